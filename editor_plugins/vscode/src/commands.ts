/** The commands of the palette, each by its name in package.json without `foregram.`. */

import * as vscode from "vscode";

import type { ServerCommand } from "./command";
import type { Feedback } from "./feedback";
import { chooseHost, setToken } from "./hosts";
import type { Installer } from "./installer";
import type { Locator } from "./locator";
import { showMenu } from "./menu";
import { chooseModel } from "./models";
import type { Preferences } from "./preferences";
import { run } from "./process";
import { showPrinted, showWhy } from "./reports";
import type { Server } from "./server";
import { environmentOf } from "./settings";
import type { StatusItem } from "./statusItem";

export class Commands {
  constructor(
    private readonly server: Server,
    private readonly locator: Locator,
    private readonly preferences: Preferences,
    private readonly status: StatusItem,
    private readonly feedback: Feedback,
    private readonly installer: Installer,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  get table(): Readonly<Record<string, () => unknown>> {
    const { preferences, feedback, status, output } = this;
    const { executeCommand } = vscode.commands;
    return {
      menu: () => showMenu(preferences, status.shown),
      trigger: () => executeCommand("editor.action.inlineSuggest.trigger"),
      acceptWord: () => feedback.acceptPart("editor.action.inlineSuggest.acceptNextWord"),
      acceptLine: () => feedback.acceptPart("editor.action.inlineSuggest.acceptNextLine"),
      nextCandidate: () => executeCommand("editor.action.inlineSuggest.showNext"),
      previousCandidate: () => executeCommand("editor.action.inlineSuggest.showPrevious"),
      toggle: () => preferences.enableHere(!preferences.switches.enable),
      toggleEverywhere: () => preferences.enableEverywhere(!preferences.isEnabledEverywhere),
      toggleLanguage: () => this.toggleLanguage(),
      showWhy: () => showWhy(this.server.running, status.shown.message, output),
      restart: () => this.server.restart(),
      showLogs: () => this.print("logs", "--lines", "200"),
      doctor: () => this.print("doctor"),
      chooseModel: () => this.chooseModel(),
      chooseHost: () => chooseHost(preferences),
      setToken: () => setToken(preferences),
      install: () => this.install(),
    };
  }

  async offerToInstall(): Promise<void> {
    const answer = await vscode.window.showWarningMessage(
      "foregram: the completion server is not installed on this machine.",
      "Install…",
      "Choose an Installed One",
    );
    if (answer === "Install…") {
      await this.install();
    } else if (answer !== undefined) {
      const { executeCommand } = vscode.commands;
      await executeCommand("workbench.action.openSettings", "foregram.server.command");
    }
  }

  private async toggleLanguage(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language !== undefined) {
      const isEnabled = this.preferences.switches.languages[language] !== false;
      await this.preferences.setLanguage(language, !isEnabled);
    }
  }

  /** The local host holds one model: it ends, and the server starts it with the new one. */
  private async chooseModel(): Promise<void> {
    const command = this.locator.findOrNothing();
    if ((await chooseModel(this.preferences)) && command !== undefined) {
      await this.stopHost(command);
      await this.server.restart();
    }
  }

  private async install(): Promise<void> {
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

  /** The server and the host run from the folder that an installation makes anew. */
  private async leaveEnvironment(): Promise<void> {
    const command = this.locator.findOrNothing();
    if (command?.origin === "extension") {
      await this.server.stop();
      await this.stopHost(command);
    }
  }

  private async stopHost(command: ServerCommand): Promise<void> {
    const environment = environmentOf(await this.preferences.forServer());
    await run(command.program, [...command.args, "stop"], { environment });
  }

  private async print(...words: string[]): Promise<void> {
    this.output.show();
    const command = this.locator.findOrNothing();
    if (command === undefined) {
      this.output.error("the foregram command is not there: install it, or name it");
      return;
    }
    const environment = environmentOf(await this.preferences.forServer());
    await showPrinted(command, words, environment, this.output);
  }
}
