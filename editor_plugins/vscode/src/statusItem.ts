/** The item at the bottom of the window: one icon, and the state in a sentence. */

import * as vscode from "vscode";

import { activeLanguage } from "./documents";
import type { Preferences } from "./preferences";
import {
  iconOf,
  isToBeSetUp,
  isTrouble,
  labelOf,
  STARTING,
  statusToShow,
  type Status,
} from "./status";

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "foregram.status",
    vscode.StatusBarAlignment.Right,
    100,
  );
  private readonly disposable: vscode.Disposable;
  private status: Status = STARTING;
  private general: Status = STARTING; // the last one that speaks of no document

  constructor(private readonly preferences: Preferences) {
    this.item.name = "foregram";
    this.disposable = vscode.Disposable.from(
      this.item,
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.status = this.general; // what the server said of the former document ends with it
        this.draw();
      }),
      vscode.workspace.onDidChangeConfiguration(this.draw),
      preferences.onDidChange(this.draw),
    );
    this.draw();
    this.item.show();
  }

  /** What is on the screen. */
  get shown(): Status {
    return statusToShow(this.status, this.preferences.switches(), activeLanguage());
  }

  /** The model that runs, where the server has named one. */
  get model(): string | undefined {
    return this.status.model ?? this.general.model;
  }

  show(status: Status): void {
    this.status = status;
    this.general = status.kind === "Inactive" ? this.general : status;
    this.draw();
  }

  private readonly draw = (): void => {
    const status = this.shown;
    this.item.text = `$(${iconOf(status)}) ${labelOf(status)}`;
    this.item.command = isToBeSetUp(status) ? "foregram.getStarted" : "foregram.menu";
    this.item.tooltip = tooltipOf(status);
    this.item.accessibilityInformation = { label: `foregram: ${status.message}`, role: "button" };
    this.item.backgroundColor = isTrouble(status)
      ? new vscode.ThemeColor(`statusBarItem.${status.kind.toLowerCase()}Background`)
      : undefined;
  };

  dispose(): void {
    this.disposable.dispose();
  }
}

const LINKS = { "foregram.showWhy": "Why No Suggestion?", "foregram.openSettings": "Settings" };

function tooltipOf(status: Status): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  tooltip.isTrusted = { enabledCommands: Object.keys(LINKS) };
  tooltip.appendText(`foregram: ${status.message}`);
  const links = Object.entries(LINKS).map(([name, label]) => `[${label}](command:${name})`);
  return tooltip.appendMarkdown(`\n\n${links.join(" · ")}`);
}
