/** Next edits: one at a time is shown, gone to, applied or dismissed. */

import * as vscode from "vscode";

import type { ForegramClient } from "./client";
import { cursorOf, isAt, isOurs } from "./documents";
import { EditDrawing } from "./editDrawing";
import { EditOccasions } from "./editOccasions";
import { NextGhost } from "./nextGhost";
import { requestNextEdit, type NextEdit } from "./nextEditRequest";
import { ShownEdit } from "./shownEdit";

const REJECT = "github.copilot.didRejectNextEditSuggestionItem";
const IGNORE = "github.copilot.didIgnoreNextEditSuggestionItem";

export class NextEdits implements vscode.Disposable {
  readonly ghost = new NextGhost((ghost) => void this.tell(IGNORE, ghost));
  private readonly disposable: vscode.Disposable;
  private readonly drawing = new EditDrawing();
  private readonly occasions = new EditOccasions(() => void this.ask());
  private asking: vscode.CancellationTokenSource | undefined;
  private shown: ShownEdit | undefined;

  /** `hasGhost`: whether a suggestion is on the screen; it comes first. */
  constructor(
    private readonly client: () => ForegramClient | undefined,
    private readonly hasGhost: (editor: vscode.TextEditor) => boolean,
  ) {
    this.disposable = vscode.Disposable.from(
      ...[this.drawing, this.occasions, this.ghost],
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && document === vscode.window.activeTextEditor?.document) {
          this.leave(IGNORE);
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.leave(IGNORE);
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === this.shown?.editor) {
          this.draw(this.shown);
        }
      }),
    );
  }

  /** What follows from something that was accepted, is asked for at once. */
  readonly accepted = (): void => {
    this.occasions.now();
  };

  /** Goes to the edit that is shown; applies it where the cursor is there. */
  async accept(): Promise<void> {
    const { shown } = this;
    if (shown === undefined) {
      await vscode.commands.executeCommand("tab"); // the key came before it was free again
      return;
    }
    if (!shown.isNear) {
      shown.goTo();
      return;
    }
    this.leave(undefined); // the change of the document is no refusal
    if (!(await shown.apply())) {
      const sentence =
        "foregram: the edit was not made, as the document has changed or is read-only";
      void vscode.window.showInformationMessage(sentence);
      await this.tell(IGNORE, shown.edit);
      return;
    }
    await this.tell(shown.edit.command?.command, shown.edit);
    this.accepted();
  }

  /** Leaves the screen to a suggestion that has come up. */
  giveWay(): void {
    if (this.shown !== undefined && this.hasGhost(this.shown.editor)) {
      this.leave(IGNORE);
    }
  }

  /** Takes it away, until something changes. */
  async dismiss(): Promise<void> {
    this.leave(REJECT);
    this.occasions.stop();
    const ghost = await this.ghost.dismiss();
    await this.tell(REJECT, ghost);
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.client();
    this.asking?.cancel();
    if (client === undefined || editor === undefined || !this.isWanted(editor)) {
      return;
    }
    const asking = new vscode.CancellationTokenSource();
    this.asking = asking;
    const { document, selection } = editor;
    const edit = await requestNextEdit(client, document, selection.active, asking.token);
    if (edit !== undefined && !asking.token.isCancellationRequested && this.isWanted(editor)) {
      this.show(editor, edit);
    }
  }

  /** Not beside another one, a suggestion or a selection. */
  private isWanted(editor: vscode.TextEditor): boolean {
    const isPlace = cursorOf(editor) !== undefined && isOurs(editor.document);
    const isLookedAt = vscode.window.state.focused && editor === vscode.window.activeTextEditor;
    const isAlone = this.shown === undefined && !this.hasGhost(editor) && !this.isGhostAt(editor);
    return isPlace && isLookedAt && isAlone;
  }

  private isGhostAt({ document, selection }: vscode.TextEditor): boolean {
    return this.ghost.at(document, selection.active) !== undefined;
  }

  private show(editor: vscode.TextEditor, edit: NextEdit): void {
    const { document, selection } = editor;
    if (!isAt(document, edit.version)) {
      return;
    }
    const shown = ShownEdit.of(editor, edit);
    const text = shown?.insertedAt(selection.active);
    const { command, version } = edit;
    if (shown === undefined) {
      return; // it changes nothing, or no place of this document
    }
    if (text !== undefined) {
      void this.ghost.show({ document, version, position: selection.active, text, command });
    } else {
      this.shown = shown;
      this.draw(shown);
    }
    void this.client()?.tell("textDocument/didShowInlineEdit", { item: { command } });
  }

  private draw(shown: ShownEdit): void {
    const cursor = cursorOf(shown.editor);
    if (cursor === undefined) {
      this.leave(IGNORE);
      return;
    }
    this.drawing.draw(shown.editor, shown.drawing(cursor));
    setContext(true, shown.takesTab(cursor));
  }

  /** Clears the screen; the server hears what became of the edit. */
  private leave(fate: string | undefined): void {
    this.asking?.cancel();
    const { shown } = this;
    if (shown !== undefined) {
      this.shown = undefined;
      this.drawing.clear();
      setContext(false, false);
      void this.tell(fate, shown.edit);
    }
  }

  private async tell(command?: string, edit?: Pick<NextEdit, "command">): Promise<void> {
    if (command !== undefined && edit?.command !== undefined) {
      const given: readonly unknown[] = edit.command.arguments ?? [];
      await this.client()?.execute(command, ...given);
    }
  }

  dispose(): void {
    this.disposable.dispose();
  }
}

/** Keys depend on it. */
function setContext(isShown: boolean, takesTab: boolean): void {
  void vscode.commands.executeCommand("setContext", "foregram.isNextEditShown", isShown);
  void vscode.commands.executeCommand("setContext", "foregram.nextEditTakesTab", takesTab);
}
