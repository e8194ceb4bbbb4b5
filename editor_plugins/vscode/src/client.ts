/** One running `foregram lsp`, and the language client that speaks with it. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type LanguageClientOptions,
} from "vscode-languageclient/node";

import type { ServerCommand } from "./command";
import { LastWords } from "./lastWords";

const STOP_MS = 2000; // for a server that is asked to end

/** Files on this machine's disk, untitled ones, cells of notebooks. */
export const DOCUMENTS = [
  { scheme: "file" },
  { scheme: "untitled" },
  { scheme: "vscode-notebook-cell" },
];

export interface ClientChoices {
  readonly command: ServerCommand;
  readonly output: vscode.LogOutputChannel;
  readonly middleware: NonNullable<LanguageClientOptions["middleware"]>;
  readonly initializationOptions: object;
  /** The server has ended by itself. */
  readonly onEnd: () => void;
}

export class ForegramClient extends LanguageClient {
  readonly words = new LastWords();
  private process: ChildProcess | undefined;

  constructor(private readonly choices: ClientChoices) {
    super("foregram", "foregram", () => this.spawn(), {
      documentSelector: DOCUMENTS,
      outputChannel: choices.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: choices.initializationOptions,
      initializationFailedHandler: () => false,
      middleware: choices.middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          choices.onEnd();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    });
  }

  /** Logged only: what a person has to know is said by the server that owns this client. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** Ends the server, at the latest by force. */
  async end(): Promise<void> {
    await this.stop(STOP_MS).catch(() => undefined); // it had not started, or has ended
    this.process?.kill();
  }

  private async spawn(): Promise<ChildProcess> {
    const { program, args } = this.choices.command;
    const started = spawn(program, [...args, "lsp"], { stdio: "pipe" });
    this.process = started;
    started.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.words.add(chunk);
    });
    await once(started, "spawn"); // which rejects where it cannot be started
    return started;
  }
}
