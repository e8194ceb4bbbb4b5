/** What the server tells of the answers that were empty, in sentences. No editor. */

import type { Remedy, Status } from "./status";

/** Why nothing was shown once, or would be shown now. */
export interface EmptyAnswer {
  readonly file: string;
  readonly line?: number; // from 1
  readonly reason: string;
  readonly sentence: string;
  readonly time_s: number;
  readonly age_s: number;
  readonly remedy?: Remedy;
}

/** Of one document alone, the latest answer first. */
export interface Why {
  readonly now: EmptyAnswer | null;
  readonly answers: readonly EmptyAnswer[];
  readonly prompt?: string | null; // what the last one was made of
}

/** An older server tells of all documents at once, and that is not what was asked for. */
export function isWhy(value: unknown): value is Why {
  return typeof value === "object" && value !== null && "answers" in value;
}

/** Where the question was asked. */
export interface Place {
  readonly name: string; // of the file
  readonly line: number; // from 1
}

/** What a person reads, and what mends it. */
export interface Told {
  readonly sentence: string;
  readonly remedy?: Remedy | undefined;
}

/**
 * What prevents a suggestion now, be it known to the server or here alone (`status`), or else
 * what prevented the last one, at this line if possible.
 */
export function told(why: Why | undefined, { name, line }: Place, status: Status): Told {
  if (why?.now) {
    return { sentence: `${name}: ${why.now.sentence}`, remedy: why.now.remedy };
  }
  if (why === undefined || status.kind !== "Normal") {
    return { sentence: `${name}: ${status.message}`, remedy: status.remedy };
  }
  const isHere = (one: EmptyAnswer): boolean => (one.line ?? line) === line;
  const last = why.answers.find(isHere) ?? why.answers[0];
  if (last === undefined) {
    const nothing = `Nothing prevents suggestions in ${name}`;
    return { sentence: `${nothing}. ${status.message}`, remedy: status.remedy };
  }
  const elsewhere = `${name}, elsewhere in this file (line ${last.line ?? line})`;
  const where = isHere(last) ? placeOf(last, name) : elsewhere;
  const sentence = `${where}, ${ageOf(last.age_s)} ago: ${last.sentence}`;
  return { sentence, remedy: last.remedy };
}

/** All that is known, a line for each. */
export function linesOf({ now, answers, prompt }: Why, name: string): string[] {
  const lines = answers.map((one) => {
    const clock = new Date(1000 * one.time_s).toLocaleTimeString();
    const line = `${placeOf(one, name)}: ${one.sentence} (${one.reason})`;
    return `${clock}  ${ageOf(one.age_s)} ago  ${line}`;
  });
  const first = now === null ? [] : [`now  ${name}: ${now.sentence} (${now.reason})`];
  return [...first, ...lines, ...(prompt ? ["", `The last prompt: ${prompt}`] : [])];
}

function placeOf({ line }: EmptyAnswer, name: string): string {
  return line === undefined ? name : `${name}, line ${line}`;
}

/** A length of time as one says it. */
export function ageOf(seconds: number): string {
  if (seconds < 60) {
    return `${Math.floor(seconds)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
