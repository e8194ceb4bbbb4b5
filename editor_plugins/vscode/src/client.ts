/** One running `foregram lsp`, and the language client that speaks with it. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import type * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";

import type { ServerCommand } from "./command";
import { DOCUMENTS } from "./documents";
import { LastWords } from "./process";

const STOP_MS = 2000; // for a server that is asked to end
const START_MS = 30_000; // for one that is asked who it is; on a busy machine that takes seconds

/** The status item says how far a model is loaded; a progress of the window would say it twice. */
const NO_PROGRESS: StaticFeature = {
  fillClientCapabilities: ({ window }) => {
    Object.assign(window ?? {}, { workDoneProgress: false });
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

export type Completions =
  vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

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
  private isAbandoned = false;

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
          this.ended();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    });
    this.registerFeature(NO_PROGRESS);
  }

  /** Logged only: what a person has to know is said by the server that owns this client. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** Rejects where the server ends meanwhile, or does not answer. */
  override async start(): Promise<void> {
    const timer = setTimeout(() => {
      this.words.add(`\nit did not answer within ${START_MS / 1000} s\n`);
      this.process?.kill("SIGKILL");
    }, START_MS);
    try {
      await super.start();
    } catch (error) {
      this.choices.output.error(String(error));
      this.ended();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The completions of a place, as VS Code gets them. */
  async complete(
    document: vscode.TextDocument,
    ...asked: [vscode.Position, vscode.InlineCompletionContext, vscode.CancellationToken]
  ): Promise<Completions> {
    const feature = this.getFeature("textDocument/inlineCompletion");
    return feature?.getProvider(document)?.provideInlineCompletionItems(document, ...asked);
  }

  /** The answer of a command of the server; undefined where it knows no such command, or fails. */
  async execute(command: string, ...args: unknown[]): Promise<unknown> {
    const asked = { command, arguments: args };
    return this.sendRequest("workspace/executeCommand", asked).catch(() => undefined);
  }

  /** One that ends just now has no use for what it is told. */
  async tell(method: string, params: object): Promise<void> {
    await this.sendNotification(method, params).catch(() => undefined);
  }

  /** Ends a server that is still starting: nobody waits for it any more. */
  abandon(): void {
    this.isAbandoned = true;
    this.process?.kill("SIGKILL");
  }

  /** Ends the server, at the latest by force. */
  async end(): Promise<void> {
    this.isAbandoned = true;
    await this.stop(STOP_MS).catch(() => undefined); // it had not started, or has ended
    this.process?.kill();
  }

  /** A crash while starting is told twice; what was asked to end has not crashed. */
  private ended(): void {
    if (!this.isAbandoned) {
      this.isAbandoned = true;
      this.choices.onEnd();
    }
  }

  private async spawn(): Promise<ChildProcess> {
    const { program, args } = this.choices.command;
    const started = spawn(program, [...args, "lsp"], { stdio: "pipe", cwd: homedir() });
    this.process = started;
    started.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.words.add(chunk);
    });
    await once(started, "spawn"); // which rejects where it cannot be started
    return started;
  }
}
