/** In a browser without a machine behind it no process can be started: this says so. */

import * as vscode from "vscode";

const WHY =
  "foregram runs a language server, and here is no machine to start it on. " +
  "Open the folder in VS Code on a desktop, through Remote-SSH or WSL, or in code-server.";

export function activate(context: vscode.ExtensionContext): void {
  const item = vscode.window.createStatusBarItem(
    "foregram.status",
    vscode.StatusBarAlignment.Right,
    100,
  );
  item.text = "$(circle-slash) foregram";
  item.tooltip = WHY;
  item.command = "foregram.menu";
  item.show();
  const say = (): Thenable<unknown> => vscode.window.showWarningMessage(WHY);
  const names = context.extension.packageJSON as Manifest;
  for (const { command } of names.contributes.commands) {
    context.subscriptions.push(vscode.commands.registerCommand(command, say));
  }
  context.subscriptions.push(item);
}

interface Manifest {
  readonly contributes: { readonly commands: readonly { readonly command: string }[] };
}
