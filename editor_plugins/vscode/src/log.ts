/** What this window has written into its log, to be read beside the completion host's own. */

import type * as vscode from "vscode";

const MAX_LINES = 500;
const LEVELS = ["info", "warn", "error"];
const RAW = ["append", "appendLine"];

export class Log {
  /** The channel, which remembers what goes through it. */
  readonly output: vscode.LogOutputChannel;
  private kept: string[] = [];

  constructor(channel: vscode.LogOutputChannel) {
    this.output = new Proxy({} as vscode.LogOutputChannel, {
      get: (_, name) => {
        const value: unknown = Reflect.get(channel, name);
        if (typeof value !== "function") {
          return value;
        }
        return (...args: unknown[]): unknown => {
          this.keep(String(name), String(args[0]));
          return Reflect.apply(value, channel, args);
        };
      },
    });
  }

  /** The last lines, the oldest first. */
  get lines(): readonly string[] {
    return this.kept;
  }

  private keep(method: string, text: string): void {
    if (LEVELS.includes(method) || RAW.includes(method)) {
      const clock = new Date().toLocaleTimeString();
      const level = RAW.includes(method) ? "" : ` [${method}]`;
      this.kept = [...this.kept, `${clock}${level} ${text.trimEnd()}`].slice(-MAX_LINES);
    }
  }
}
