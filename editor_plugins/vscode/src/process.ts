/** Commands that run to their end: their lines as they come, their status, a way to stop them. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { createInterface } from "node:readline";

const MAX_CHARACTERS = 4000;

/** What a process wrote last. */
export class LastWords {
  private text = "";

  add(chunk: string): void {
    this.text = (this.text + chunk).slice(-MAX_CHARACTERS);
  }

  /** The last line that says something; of a command's own failures it is the whole reason. */
  get sentence(): string {
    const lines = this.text.split("\n").map((line) => line.trim());
    return lines.findLast((line) => line !== "") ?? "it said nothing";
  }
}

export interface Ended {
  readonly status: number;
  readonly lastLine: string;
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly onLine?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal;
}

/** Runs a program. Rejects where it cannot be started; a bad status is an answer. */
export async function run(
  program: string,
  args: readonly string[],
  { environment, onLine, signal }: RunOptions = {},
): Promise<Ended> {
  const started = spawn(program, args, {
    env: { ...process.env, ...environment },
    cwd: homedir(), // and not in a repository, whose files a program may take for its own
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own, so that what it has started ends with it
  });
  const words = new LastWords();
  for (const stream of [started.stdout, started.stderr]) {
    createInterface(stream).on("line", (line) => {
      words.add(`${line}\n`);
      onLine?.(line);
    });
  }
  const stop = (): void => {
    stopGroup(started.pid);
  };
  signal?.addEventListener("abort", stop);
  try {
    const [status] = (await once(started, "close")) as [number | null];
    return { status: status ?? -1, lastLine: words.sentence };
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

function stopGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) {
      process.kill(-leader);
    }
  } catch {
    // it has ended meanwhile
  }
}
