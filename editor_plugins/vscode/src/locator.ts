/** Where foregram's command is, by the settings of the moment. */

import { findCommand, type ServerCommand } from "./command";
import type { Preferences } from "./preferences";
import { run, type Ended } from "./process";
import { environmentOf } from "./settings";

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
