/** The language server as the extension sees it: started, started again, stopped after crashes. */

import * as vscode from "vscode";

import type { MoreText } from "./askAgain";
import { ForegramClient, type ClientChoices } from "./client";
import type { Locator, ServerCommand } from "./command";
import { CRASH_LIMIT, Crashes } from "./crashes";
import { whyNotHere } from "./installation";
import type { Installer } from "./installer";
import { installing, STARTING, TRY_AGAIN, type Remedy, type Status } from "./status";
import type { StatusItem } from "./statusItem";
import { isAtLeast, MINIMUM_SERVER } from "./version";

/** What the server needs from the extension. */
export interface Surroundings {
  readonly output: vscode.LogOutputChannel;
  readonly middleware: ClientChoices["middleware"];
  readonly locator: Locator;
  readonly installer: Installer;
  readonly status: StatusItem;
  initializationOptions(): Promise<object>;
  started(): void;
  readonly askAgain: () => void;
  readonly showMore: (more: MoreText) => void;
  alarm(message: string, remedies: readonly Remedy[]): void;
}

export class Server implements vscode.Disposable {
  private client: ForegramClient | undefined;
  private starting: ForegramClient | undefined;
  private readonly crashes = new Crashes();
  private turn: Promise<void> = Promise.resolve(); // starts and stops take turns
  private next: Promise<void> | undefined; // a start that has not begun: later ones join it
  private shown: Status = STARTING;
  private timer: NodeJS.Timeout | undefined;
  private told = ""; // the failure that a person was told of

  constructor(private readonly around: Surroundings) {}

  /** The client while the server runs. */
  get running(): ForegramClient | undefined {
    return this.client;
  }

  /** Starts the server, or starts it again. */
  restart(): Promise<void> {
    this.told = ""; // who tries again hears of it where that fails again
    this.crashes.forget();
    this.starting?.abandon();
    return this.startAgain();
  }

  stop(): Promise<void> {
    clearTimeout(this.timer);
    this.starting?.abandon();
    return this.take(() => this.endClient());
  }

  dispose(): void {
    void this.stop();
  }

  private startAgain(): Promise<void> {
    clearTimeout(this.timer);
    this.next ??= this.take(async () => {
      this.next = undefined;
      await this.endClient();
      await this.begin();
    });
    return this.next;
  }

  private take(action: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(action).catch((error: unknown) => {
      this.around.output.error(String(error));
    });
    return this.turn;
  }

  private async endClient(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await setRunning(false);
    await client?.end();
  }

  private async begin(): Promise<void> {
    const command = this.around.locator.find();
    if (command === undefined) {
      this.showMissing();
      return;
    }
    if (typeof command === "string") {
      this.fail(command, SHOW_SETTING);
      return;
    }
    this.show(STARTING);
    const client = await this.connect(command);
    if (client === undefined) {
      return;
    }
    const version = client.initializeResult?.serverInfo?.version ?? "of no known version";
    if (!isAtLeast(version, MINIMUM_SERVER)) {
      await client.end();
      this.refuse(command, version);
      return;
    }
    this.client = client;
    this.around.started();
    await setRunning(true);
  }

  private showMissing(): void {
    if (this.around.installer.isAtWork) {
      this.show(installing("another window installs the server"));
      this.timer = setTimeout(() => void this.startAgain(), ELSEWHERE_MS);
      return;
    }
    const objection = whyNotHere(process.platform, process.arch);
    const remedy = objection === undefined ? { remedy: INSTALL } : {};
    const message = objection ?? NOT_INSTALLED;
    this.show({ kind: "Warning", state: "missing", message, ...remedy });
  }

  private async connect(command: ServerCommand): Promise<ForegramClient | undefined> {
    const onEnd = (): void => {
      this.ended(client);
    };
    const { output, middleware } = this.around;
    const initializationOptions = await this.around.initializationOptions();
    const options = { command, output, middleware, initializationOptions, onEnd };
    const client = new ForegramClient(options);
    client.onNotification("didChangeStatus", (status: Status) => {
      this.heed(status);
    });
    client.onNotification("foregram/askAgain", this.around.askAgain);
    client.onNotification("foregram/moreText", this.around.showMore);
    this.starting = client;
    try {
      await client.start();
      if (this.shown === STARTING) {
        this.show({ kind: "Normal", message: "The server is running" });
      }
      return client;
    } catch {
      return undefined; // it has told of its end
    } finally {
      this.starting = undefined;
    }
  }

  /** It has ended by itself: it gets another start, unless it does so again and again. */
  private ended(client: ForegramClient): void {
    if (this.client === client) {
      this.client = undefined;
      void setRunning(false);
    }
    const why = client.words.sentence;
    const pause = this.crashes.add(Date.now());
    this.around.output.error(`the language server has ended: ${why}`);
    if (pause === undefined) {
      this.fail(`the server has ended ${CRASH_LIMIT} times: ${why}`, RESTART);
      return;
    }
    this.show({ kind: "Warning", message: `the server has ended (${why}) and starts again` });
    this.timer = setTimeout(() => void this.startAgain(), pause);
  }

  private refuse(command: ServerCommand, version: string): void {
    const need = `this extension needs ${MINIMUM_SERVER} or newer`;
    const remedy = command.origin === "settings" ? SHOW_SETTING : UPDATE;
    this.fail(`the server ${command.program} is ${version}: ${need}`, remedy);
  }

  private show(status: Status): void {
    this.shown = status;
    this.around.status.show(status);
  }

  /** What the server says. A model that cannot be loaded is told once, with what helps. */
  private heed(status: Status): void {
    const isFailure = status.state === "failed" && status.kind === "Error";
    if (isFailure && status.message !== this.told) {
      const remedies = status.remedy === undefined ? [] : [status.remedy];
      this.around.alarm(status.message, [TRY_AGAIN, ...remedies]);
    }
    this.told = isFailure ? status.message : status.state === "ready" ? "" : this.told;
    this.show(status);
  }

  private fail(message: string, remedy: Remedy): void {
    this.show({ kind: "Error", message, remedy });
    this.around.alarm(message, [remedy]);
  }
}

const NOT_INSTALLED = "Server not installed. Click to get started";
const ELSEWHERE_MS = 1000; // between two looks at what another window installs
const INSTALL: Remedy = { action: "install", title: "Install the Server…" };
const UPDATE: Remedy = { action: "install", title: "Update" };
const RESTART: Remedy = { action: "restartServer", title: "Restart foregram" };
const SHOW_SETTING: Remedy = { action: "showCommandSetting", title: "Open Settings" };

async function setRunning(isRunning: boolean): Promise<void> {
  await vscode.commands.executeCommand("setContext", "foregram.isRunning", isRunning);
}
