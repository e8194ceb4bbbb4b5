/** How foregram is installed: into an environment of its own, by commands that a person can read. */

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { run } from "./process";

export interface Step {
  readonly program: string;
  readonly args: readonly string[];
  /** What makes the step needless where it succeeds: arguments of the same program. */
  readonly unless?: readonly string[];
}

/** What comes with the extension: the server, and what it needs, by version and hash. */
export interface Bundle {
  readonly wheel: string;
  readonly locked: string;
  readonly lockedForCuda: string;
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
export function bundle(extension: string): Bundle | undefined {
  const folder = join(extension, "server");
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  const requirements = join(extension, "requirements");
  return wheel === undefined
    ? undefined
    : {
        wheel: join(folder, wheel),
        locked: join(requirements, "locked.txt"),
        lockedForCuda: join(requirements, "locked-cuda.txt"),
      };
}

/**
 * The commands for what came with the extension. Every file that is fetched has a hash that we know,
 * and none is a source archive, whose setup would run. Where torch is a build for GPUs, which needs
 * more packages, `pip check` fails without them.
 */
export function bundleSteps(python: string, environment: string, brought: Bundle): Step[] {
  const program = join(environment, "bin", "python");
  const pip = ["-I", "-m", "pip"];
  const install = [...pip, "install", "--no-input", "--progress-bar=off", "--no-deps"];
  const locked = [...install, "--require-hashes", "--only-binary", ":all:", "-r"];
  return [
    makeEnvironment(python, environment),
    { program, args: [...locked, brought.locked] },
    { program, args: [...locked, brought.lockedForCuda], unless: [...pip, "check"] },
    { program, args: [...install, "--no-index", brought.wheel] },
  ];
}

/**
 * The commands for a package that a person names. Without an NVIDIA GPU an exact torch is asked for,
 * which a CPU build satisfies ("2.13.0+cpu" counts as 2.13.0); the range would pass it by for a newer
 * one for GPUs.
 */
export function installSteps(
  python: string,
  environment: string,
  what: string,
  hasGpu: boolean,
): Step[] {
  const torch = hasGpu ? [] : ["torch==2.13.0"];
  return [
    makeEnvironment(python, environment),
    {
      program: join(environment, "bin", "python"),
      args: ["-I", "-m", "pip", "install", "--no-input", "--progress-bar=off", ...torch, what],
    },
  ];
}

/** A step as one would type it. */
export function asTyped(step: Step): string {
  const typed = (args: readonly string[]): string =>
    [step.program, ...args]
      .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`))
      .join(" ");
  return step.unless === undefined
    ? typed(step.args)
    : `${typed(step.unless)} || ${typed(step.args)}`;
}

function makeEnvironment(python: string, environment: string): Step {
  return { program: python, args: ["-I", "-m", "venv", "--clear", environment] };
}
