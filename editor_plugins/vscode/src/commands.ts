/** The commands of the palette, each by its name in package.json without `foregram.`. */

import * as vscode from "vscode";

import type { AskAgain } from "./askAgain";
import type { AskedEdits } from "./askedEdits";
import type { Locator } from "./command";
import type { Feedback } from "./feedback";
import { chooseHost, setToken } from "./hosts";
import { warningOf } from "./hostUse";
import type { Installer } from "./installer";
import type { Log } from "./log";
import { showMenu } from "./menu";
import { titleOf } from "./modelNames";
import { askForModel } from "./models";
import type { NextEdits } from "./nextEdits";
import { showSettings, type Preferences } from "./preferences";
import { Remedies } from "./remedies";
import type { ReportDocuments } from "./reportDocuments";
import { showWhy } from "./reports";
import type { Server } from "./server";
import type { Remedy } from "./status";
import type { StatusItem } from "./statusItem";

const { executeCommand } = vscode.commands;

export class Commands {
  private readonly remedies = new Remedies({
    enable: () => this.preferences.enableHere(true),
    enableLanguage: () => this.setLanguage(true),
    restart: () => this.restartHost(),
    wake: () => {
      this.preferences.snoozeFor(0);
    },
  });

  constructor(
    private readonly server: Server,
    private readonly locator: Locator,
    private readonly preferences: Preferences,
    private readonly status: StatusItem,
    private readonly feedback: Feedback,
    private readonly installer: Installer,
    private readonly documents: ReportDocuments,
    private readonly log: Log,
    private readonly askedEdits: AskedEdits,
    private readonly nextEdits: NextEdits,
    private readonly askAgain: AskAgain,
  ) {}

  get table(): Readonly<Record<string, () => unknown>> {
    const { preferences, feedback, status, remedies, askedEdits, nextEdits } = this;
    return {
      getStarted: () => executeCommand(OPEN_WALKTHROUGH, "foregram.foregram#start"),
      menu: () => showMenu(preferences, remedies, status.shown),
      trigger: () => executeCommand("editor.action.inlineSuggest.trigger"),
      dismiss: () => this.askAgain.dismiss(),
      acceptWord: () => feedback.acceptPart("editor.action.inlineSuggest.acceptNextWord"),
      acceptLine: () => feedback.acceptPart("editor.action.inlineSuggest.acceptNextLine"),
      nextCandidate: () => executeCommand("editor.action.inlineSuggest.showNext"),
      previousCandidate: () => executeCommand("editor.action.inlineSuggest.showPrevious"),
      editSelection: () => askedEdits.ask(),
      acceptEdit: () => askedEdits.accept(),
      discardEdit: () => askedEdits.discard(),
      acceptNextEdit: () => nextEdits.accept(),
      dismissNextEdit: () => nextEdits.dismiss(),
      toggle: () => preferences.enableHere(!preferences.switches().enable),
      toggleEverywhere: () => preferences.enableEverywhere(!preferences.isEnabledEverywhere),
      toggleLanguage: () => this.setLanguage(),
      showWhy: () => showWhy(this.server.running, status.shown, remedies, this.documents),
      showSaved: () => this.print(["saved"]),
      resetSaved: () => this.print(["saved", "--reset"]),
      restart: () => this.server.restart(),
      showLogs: () => this.showLogs(),
      doctor: () => this.print(["doctor"]),
      chooseModel: () => this.chooseModel(),
      chooseHost: () => chooseHost(preferences),
      setToken: () => setToken(preferences),
      openSettings: () => showSettings("@ext:foregram.foregram"),
      install: () => this.install(),
      remove: () => this.remove(),
      snooze: () => this.snooze(),
    };
  }

  private async snooze(): Promise<void> {
    const times = [5, 15, 30, 60].map((minutes) => ({ label: `${minutes} minutes`, minutes }));
    const placeHolder = "No suggestions for";
    const chosen = await vscode.window.showQuickPick(times, { placeHolder });
    if (chosen !== undefined) {
      this.preferences.snoozeFor(chosen.minutes);
    }
  }

  /** Tells of trouble, with buttons for what mends it. */
  async alarm(message: string, remedies: readonly Remedy[]): Promise<void> {
    const logs: Remedy = { action: "showLogs", title: "Show Logs" };
    const runnable = remedies.filter((one) => this.remedies.has(one) && one.action !== logs.action);
    const buttons = [...runnable, logs];
    const told = `foregram: ${message}`;
    const chosen = await vscode.window.showErrorMessage(told, ...buttons.map(({ title }) => title));
    const button = buttons.find(({ title }) => title === chosen);
    if (button !== undefined) {
      await this.remedies.run(button);
    }
  }

  /** On or off; turned over where that is not said. */
  private async setLanguage(enable?: boolean): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language !== undefined) {
      const isOff = this.status.shown.remedy?.action === "enableLanguage"; // by default, perhaps
      const isEnabled = !isOff && this.preferences.switches().languages[language] !== false;
      await this.preferences.setLanguage(language, enable ?? !isEnabled);
    }
  }

  private async chooseModel(): Promise<void> {
    const model = await askForModel(this.preferences, this.status.model, this.server);
    if (model === this.preferences.model) {
      const question = `Already set: ${titleOf(model)}. Restart it?`;
      if ((await vscode.window.showInformationMessage(question, "Restart")) !== undefined) {
        await this.restartHost();
      }
    } else if (model !== undefined && (await this.mayEndHost(`Load ${titleOf(model)}`))) {
      await this.preferences.set("model", model);
      await this.restartAll(); // the local host holds one model
    }
  }

  private async restartHost(): Promise<void> {
    if (await this.mayEndHost("Restart foregram")) {
      await this.restartAll();
    }
  }

  /**
   * Asks before a host that others use, or may use, is ended; `button` says what for. None is ended
   * without a command, nor on another machine.
   */
  private async mayEndHost(button: string): Promise<boolean> {
    const isOurs = this.locator.findOrNothing() !== undefined && this.preferences.hostUrl === "";
    const use = isOurs ? await this.server.running?.execute("foregram.hostUse") : undefined;
    const detail = isOurs ? warningOf(use) : undefined;
    if (detail === undefined) {
      return true;
    }
    const question = `${button} for all who share this machine's model?`;
    const options = { modal: true, detail };
    return (await vscode.window.showWarningMessage(question, options, button)) === button;
  }

  /** The local host, too, which else is not tried again soon after it has failed. */
  private async restartAll(): Promise<void> {
    if (this.preferences.hostUrl === "") {
      await this.locator.run(STOP_HOST);
    }
    await this.server.restart();
  }

  /** Another window may have installed the server meanwhile, or be about to. */
  private async isStillMissing(): Promise<boolean> {
    await this.server.restart();
    return this.status.shown.state === "missing";
  }

  private async install(): Promise<void> {
    if (this.status.shown.state === "missing" && !(await this.isStillMissing())) {
      return;
    }
    const wanted = this.preferences.serverPackage;
    if (!(await this.installer.install(wanted, () => this.leaveEnvironment()))) {
      return;
    }
    await this.server.restart();
    if (this.preferences.serverCommand.length > 0) {
      await vscode.window.showInformationMessage(
        "foregram.server.command names another server, which stays in use until it is cleared.",
      );
    }
  }

  /** Removes what foregram keeps on this machine, after saying what that is. */
  private async remove(): Promise<void> {
    const listed: string[] = [];
    const onLine = (line: string): number => listed.push(line);
    const found = await this.locator.run(["uninstall"], onLine); // removes nothing, without --yes
    if (found === undefined) {
      await vscode.window.showInformationMessage("No server is installed.");
      return;
    }
    const lines = listed.filter((line) => !line.startsWith("foregram: "));
    const detail = [...lines, "", "Other windows and editors on this machine lose it, too."];
    const question = "Remove the server, its models and its caches from this machine?";
    const options = { modal: true, detail: detail.join("\n") };
    if ((await vscode.window.showWarningMessage(question, options, "Remove")) === undefined) {
      return;
    }
    await this.server.stop();
    const ended = await this.locator.run(["uninstall", "--yes"]);
    if (ended !== undefined && ended.status !== 0) {
      void vscode.window.showErrorMessage(`foregram could not be removed: ${ended.lastLine}`);
    }
    await this.server.restart();
  }

  /** The server and the host run from the folder that an installation makes anew. */
  private async leaveEnvironment(): Promise<boolean> {
    if (this.locator.findOrNothing()?.origin !== "extension") {
      return true;
    }
    if (!(await this.mayEndHost("Update the server"))) {
      return false;
    }
    await this.server.stop();
    await this.locator.run(STOP_HOST);
    return true;
  }

  private async showLogs(): Promise<void> {
    const own = ["This window", ...this.log.lines, "", "The model's process"];
    await this.print(["logs", "--lines", "200"], own);
  }

  /** Opens a report of what one of foregram's own commands prints, as it comes. */
  private async print(words: [string, ...string[]], before: string[] = []): Promise<void> {
    const onLine = await this.documents.open(`foregram ${words[0]}`, before);
    const title = `foregram ${words.join(" ")}`;
    const location = vscode.ProgressLocation.Window;
    const ended = await vscode.window.withProgress({ location, title }, () =>
      this.locator.run(words, onLine),
    );
    if (ended === undefined) {
      onLine(
        "`foregram` was not found: install the server from the menu, or name one in the settings.",
      );
    }
  }
}

const OPEN_WALKTHROUGH = "workbench.action.openWalkthrough";
const STOP_HOST = ["stop", "--force"]; // who shares it has been thought of before
