/** The item at the bottom of the window: one icon, and the state in a sentence. */

import * as vscode from "vscode";

import type { Preferences } from "./preferences";
import { iconOf, STARTING, statusToShow, type Status } from "./status";

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly disposables: { dispose(): unknown }[];
  private status: Status = STARTING;

  constructor(private readonly preferences: Preferences) {
    this.item = vscode.window.createStatusBarItem(
      "foregram.status",
      vscode.StatusBarAlignment.Right,
      100,
    );
    this.item.name = "foregram";
    this.item.command = "foregram.menu";
    const draw = (): void => {
      this.draw();
    };
    this.disposables = [
      this.item,
      vscode.window.onDidChangeActiveTextEditor(draw),
      vscode.workspace.onDidChangeConfiguration(draw),
    ];
    this.draw();
    this.item.show();
  }

  /** What is on the screen. */
  get shown(): Status {
    const language = vscode.window.activeTextEditor?.document.languageId;
    return statusToShow(this.status, this.preferences.switches, language);
  }

  show(status: Status): void {
    this.status = status;
    this.draw();
  }

  private draw(): void {
    const status = this.shown;
    this.item.text = `$(${iconOf(status)}) foregram`;
    this.item.tooltip = `foregram: ${status.message}`;
    this.item.accessibilityInformation = { label: `foregram: ${status.message}`, role: "button" };
    this.item.backgroundColor = backgroundOf(status);
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }
}

function backgroundOf(status: Status): vscode.ThemeColor | undefined {
  if (status.kind === "Error" || status.kind === "Warning") {
    return new vscode.ThemeColor(`statusBarItem.${status.kind.toLowerCase()}Background`);
  }
  return undefined;
}
