/** The command that starts foregram: named by a person, installed by us, or found. No editor. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

import type { Preferences } from "./preferences";
import { run, type Ended } from "./process";
import { environmentOf } from "./settings";

export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly origin: "settings" | "extension" | "path";
}

/** Where the command is, by the settings of the moment. */
export class Locator {
  constructor(
    private readonly preferences: Preferences,
    readonly environment: string, // of Python, where the extension installs the server
  ) {}

  /** Undefined where it is not installed; a sentence where a setting is wrong. */
  find(): ServerCommand | string | undefined {
    const path = process.env["PATH"] ?? "";
    return findCommand(this.preferences.serverCommand, this.environment, path);
  }

  /** Undefined also where a setting is wrong. */
  findOrNothing(): ServerCommand | undefined {
    const found = this.find();
    return typeof found === "string" ? undefined : found;
  }

  /** Runs one of foregram's own commands with the same settings; undefined where there is none. */
  async run(words: string[], onLine?: (line: string) => void): Promise<Ended | undefined> {
    const command = this.findOrNothing();
    if (command === undefined) {
      return undefined;
    }
    const environment = environmentOf(await this.preferences.forServer());
    return run(command.program, [...command.args, ...words], { environment, onLine });
  }
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
