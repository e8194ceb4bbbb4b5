/** Wires the parts together; each of them works by itself. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";

import { AskedEdits } from "./askedEdits";
import { AskAgain, type Provide } from "./askAgain";
import type { ClientChoices } from "./client";
import { commandIn, Locator } from "./command";
import { Commands } from "./commands";
import type { EditRequest } from "./editRequest";
import { Feedback } from "./feedback";
import { Installer } from "./installer";
import { Log } from "./log";
import { NextEdits } from "./nextEdits";
import { Preferences } from "./preferences";
import { ReportDocuments } from "./reportDocuments";
import { Server } from "./server";
import { environmentOf, SECTION } from "./settings";
import { isToBeSetUp } from "./status";
import { StatusItem } from "./statusItem";

const WELCOMED = "welcomed";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = new Log(vscode.window.createOutputChannel("foregram", { log: true }));
  const { output } = log;
  const preferences = new Preferences(context);
  const status = new StatusItem(preferences);
  const feedback = new Feedback(() => server?.running);
  const askAgain = new AskAgain(() => server?.running, context.extension.id, preferences, feedback);
  const edits = new AskedEdits(() => server?.running);
  const nextEdits = new NextEdits(
    () => server?.running,
    (editor) => askAgain.isOffered(editor),
  );
  const environment = join(context.globalStorageUri.fsPath, "server");
  const locator = new Locator(preferences, environment);
  const installer = new Installer(environment, context.extensionPath, output, status);
  const started = new Server({
    ...{ output, locator, installer, status },
    middleware: middleware(preferences, askAgain.provide, edits, nextEdits),
    initializationOptions: () => initializationOptions(preferences),
    started: () => {
      feedback.tellFocus();
      if (vscode.window.activeTextEditor?.document.isDirty === true) {
        void askAgain.ask(); // for what was typed while no server ran
      }
    },
    askAgain: () => void askAgain.ask(),
    showMore: (more) => void askAgain.showMore(more),
    alarm: (message, remedies) => void commands.alarm(message, remedies),
  });
  const documents = new ReportDocuments();
  const around = [locator, preferences, status, feedback, installer, documents, log] as const;
  const commands = new Commands(started, ...around, edits, nextEdits, askAgain);
  server = started;
  context.subscriptions.push(output, documents, status, feedback, askAgain, started, installer);
  context.subscriptions.push(edits, nextEdits);
  for (const [name, action] of Object.entries(commands.table)) {
    context.subscriptions.push(vscode.commands.registerCommand(`foregram.${name}`, action));
  }
  listen(context, preferences, started);
  await noteFolders(environment, preferences);
  await started.restart();
  if (isToBeSetUp(status.shown)) {
    void welcome(context.globalState);
  }
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** Leads a person through the first steps, once. */
async function welcome(memory: vscode.Memento): Promise<void> {
  if (memory.get(WELCOMED) !== true) {
    await memory.update(WELCOMED, true);
    await vscode.commands.executeCommand("foregram.getStarted");
  }
}

/**
 * Changed settings reach the server, which asks for them. It takes those that no workspace may make
 * when it starts: they start it anew.
 */
function listen(context: vscode.ExtensionContext, preferences: Preferences, started: Server): void {
  const tell = (): void => {
    void started.running?.tell("workspace/didChangeConfiguration", { settings: null });
  };
  context.subscriptions.push(
    context.secrets.onDidChange(() => void started.restart()),
    preferences.onDidChange(tell),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (preferences.own.some((name) => change.affectsConfiguration(name))) {
        void started.restart();
      } else if (change.affectsConfiguration(SECTION)) {
        tell();
      }
    }),
  );
}

/** What uninstall.ts reads when the extension is gone: the server's program, and its folders. */
async function noteFolders(environment: string, preferences: Preferences): Promise<void> {
  const { cacheFolder, runtimeFolder } = await preferences.forServer();
  const folders = environmentOf({ cacheFolder, runtimeFolder });
  const note = { program: commandIn(environment), environment: folders };
  const file = join(__dirname, "uninstall.json"); // beside the bundled code
  await writeFile(file, JSON.stringify(note)).catch(() => undefined); // nor is it ours to remove
}

async function initializationOptions(preferences: Preferences): Promise<object> {
  return {
    [SECTION]: await preferences.forServer(),
    asksAgain: true,
    editorInfo: { name: vscode.env.appName, version: vscode.version },
    editorPluginInfo: { name: "foregram", version: preferences.version },
  };
}

function middleware(
  preferences: Preferences,
  provide: Provide,
  edits: AskedEdits,
  nextEdits: NextEdits,
): ClientChoices["middleware"] {
  return {
    provideInlineCompletionItems: async (document, position, ...others) => {
      const next = nextEdits.ghost.at(document, position);
      const answer = next ?? (await provide(document, position, ...others));
      nextEdits.giveWay();
      return answer;
    },
    executeCommand: async (command, given, next) => {
      if (command === "foregram.edit") {
        await edits.make(given[0] as EditRequest); // a code action: it is shown before it is made
        return undefined;
      }
      const answer: unknown = await next(command, given);
      nextEdits.accepted(); // else the commands that VS Code runs are those of suggestions
      return answer;
    },
    workspace: {
      configuration: async (params, token, next) => {
        const answer = await next(params, token);
        const ours = await preferences.forServer();
        const isOurs = (place: number): boolean => params.items[place]?.section === SECTION;
        return Array.isArray(answer)
          ? answer.map((one: unknown, place) => (isOurs(place) ? ours : one))
          : answer;
      },
    },
  };
}
