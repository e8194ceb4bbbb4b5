/** What the extension leaves beside its code for the time when it is uninstalled. No editor. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Note {
  readonly program: string; // of the server that the extension installs
  readonly environment: Readonly<Record<string, string>>; // where its folders are
}

const FILE = join(__dirname, "uninstall.json"); // beside the bundled code

export function writeNote(note: Note): void {
  try {
    writeFileSync(FILE, JSON.stringify(note));
  } catch {
    // a folder that nobody may write is not the user's own: others may use what is installed
  }
}

export function readNote(): Note | undefined {
  try {
    return JSON.parse(readFileSync(FILE, "utf8")) as Note;
  } catch {
    return undefined; // it has never run
  }
}
