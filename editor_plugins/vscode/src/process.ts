/** Commands that run to their end: their lines as they come, their status, a way to stop them. */

import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { createInterface } from "node:readline";

import { LastWords } from "./lastWords";

export interface Ended {
  readonly status: number;
  readonly lastLine: string;
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** Runs a program. Rejects where it cannot be started; a bad status is an answer. */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  const process_ = spawn(program, args, {
    env: { ...process.env, ...options.environment },
    cwd: homedir(), // and not in a repository, whose files a program may take for its own
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own, so that what it has started ends with it
  });
  const words = new LastWords();
  for (const stream of [process_.stdout, process_.stderr]) {
    createInterface(stream).on("line", (line) => {
      words.add(`${line}\n`);
      options.onLine?.(line);
    });
  }
  const stop = (): void => {
    stopGroup(process_.pid);
  };
  options.signal?.addEventListener("abort", stop);
  try {
    const status = await new Promise<number>((resolve, reject) => {
      process_.once("error", reject);
      process_.once("close", (code) => {
        resolve(code ?? -1);
      });
    });
    return { status, lastLine: words.sentence };
  } finally {
    options.signal?.removeEventListener("abort", stop);
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
