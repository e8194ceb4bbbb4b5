/** The command that starts foregram: named by a person, installed by us, or found. No editor. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly origin: "settings" | "extension" | "path";
}

/** A virtual environment's command. */
export function commandIn(environment: string): string {
  return join(environment, "bin", "foregram");
}

/**
 * The command, undefined where foregram is not installed, or a sentence where `configured` names no
 * program. One without a folder is looked for on the path.
 */
export function findCommand(
  configured: readonly string[],
  environment: string,
  path: string,
): ServerCommand | string | undefined {
  const [wanted, ...args] = configured;
  if (wanted !== undefined && wanted !== "") {
    const program = isAbsolute(wanted) ? wanted : onPath(wanted, path);
    if (program === undefined || !isProgram(program)) {
      return `foregram.server.command names ${wanted}, which is no program here`;
    }
    return { program, args, origin: "settings" };
  }
  const own = commandIn(environment);
  if (isProgram(own)) {
    return { program: own, args: [], origin: "extension" };
  }
  const found = onPath("foregram", path);
  return found === undefined ? undefined : { program: found, args: [], origin: "path" };
}

/** The first program of that name in the path's folders. */
export function onPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // not there, or not for us
  }
}
