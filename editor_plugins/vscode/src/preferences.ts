/** VS Code's settings and secrets, as the extension reads and writes them. */

import * as vscode from "vscode";

import { chosenSettings, SECTION, serverKeys, type Settings } from "./settings";
import type { Switches } from "./status";

const HERE = "here";

interface Here {
  readonly enable?: boolean | undefined;
  readonly languages?: Readonly<Record<string, boolean>>;
}

interface Manifest {
  readonly version: string;
  readonly contributes: { readonly configuration: readonly { readonly properties: Settings }[] };
}

export class Preferences {
  readonly version: string;
  /** Settings that a person makes and no workspace: the server takes them when it starts. */
  readonly own: readonly string[];
  private readonly keys: readonly string[];
  private readonly changed = new vscode.EventEmitter<void>();
  private snooze: { readonly until: Date; readonly timer: NodeJS.Timeout } | undefined;

  /** What a person has turned on or off has changed, and no setting. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly context: vscode.ExtensionContext) {
    const manifest = context.extension.packageJSON as Manifest;
    this.version = manifest.version;
    const groups = manifest.contributes.configuration.map(({ properties }) => properties);
    const declared = Object.assign({}, ...groups) as Readonly<Record<string, { scope: string }>>;
    this.keys = serverKeys(declared);
    this.own = Object.keys(declared).filter((name) => declared[name]?.scope === "machine");
  }

  /** What the server is told: the settings that somebody has set, and the remote host's token. */
  async forServer(): Promise<Settings> {
    const token = await this.token(this.hostUrl);
    const { enable, languages } = this.switches();
    const chosen = {
      ...chosenSettings(this.configuration, this.keys),
      ...(this.here.enable === undefined ? {} : { enable }),
      ...(this.here.languages === undefined ? {} : { languages }),
      ...(this.snooze === undefined ? {} : { enable: false }),
    };
    return token === undefined ? chosen : { ...chosen, token };
  }

  get serverCommand(): readonly string[] {
    const given = this.configuration.get<unknown>("server.command");
    return Array.isArray(given) ? given.map(String) : [];
  }

  get serverPackage(): string {
    return this.text("server.package");
  }

  /** As they are in a document, if one is named. */
  switches(document?: vscode.TextDocument): Switches {
    const languages = this.configuration.get<unknown>("languages");
    const editor = vscode.workspace.getConfiguration("editor.inlineSuggest", document);
    return {
      ghostText: editor.get("enabled") !== false,
      enable: this.here.enable ?? this.configuration.get<unknown>("enable") !== false,
      languages: { ...(typeof languages === "object" ? languages : {}), ...this.here.languages },
      snoozedUntil: this.snooze?.until,
    };
  }

  /** Whether ghost text may appear in a document by itself. */
  isCompleted(document: vscode.TextDocument): boolean {
    const { ghostText, enable, languages, snoozedUntil } = this.switches(document);
    const isOn = ghostText && enable && snoozedUntil === undefined;
    return isOn && languages[document.languageId] !== false;
  }

  get hostUrl(): string {
    return this.text("hostUrl");
  }

  get model(): string {
    return this.text("model");
  }

  /** For this person in this workspace, where there is one. */
  async enableHere(enable: boolean): Promise<void> {
    if (vscode.workspace.workspaceFolders === undefined) {
      await this.update("enable", enable);
      return;
    }
    const isSet = (this.configuration.get<unknown>("enable") !== false) === enable;
    await this.keepHere({ ...this.here, enable: isSet ? undefined : enable });
  }

  /** Turns suggestions off for some minutes; 0 turns them on again. */
  snoozeFor(minutes: number): void {
    clearTimeout(this.snooze?.timer);
    this.snooze = undefined;
    if (minutes > 0) {
      const until = new Date(Date.now() + 60_000 * minutes);
      const timer = setTimeout(() => {
        this.snoozeFor(0);
      }, 60_000 * minutes);
      this.snooze = { until, timer };
    }
    this.changed.fire();
  }

  /** Whether completion is on where no workspace says otherwise. */
  get isEnabledEverywhere(): boolean {
    return this.configuration.inspect("enable")?.globalValue !== false;
  }

  /** For all workspaces, this one included. */
  async enableEverywhere(enable: boolean): Promise<void> {
    await this.update("enable", enable);
    await this.enableHere(enable);
  }

  /** Everywhere, and here also where the workspace's settings say otherwise. */
  async setLanguage(language: string, enable: boolean): Promise<void> {
    const at = this.configuration.inspect<Record<string, boolean>>("languages");
    await this.update("languages", { ...at?.globalValue, [language]: enable });
    const isSet =
      this.configuration.get<Record<string, unknown>>("languages")?.[language] === enable;
    const own: [string, boolean][] = isSet ? [] : [[language, enable]];
    const others = Object.entries(this.here.languages ?? {}).filter(([name]) => name !== language);
    await this.keepHere({ ...this.here, languages: Object.fromEntries([...others, ...own]) });
  }

  /** What is turned on or off in this workspace alone: not in a file of it, which others share. */
  private get here(): Here {
    return this.context.workspaceState.get<Here>(HERE) ?? {};
  }

  private async keepHere(here: Here): Promise<void> {
    await this.context.workspaceState.update(HERE, here);
    this.changed.fire();
  }

  async set(key: "hostUrl" | "model", text: string): Promise<void> {
    await this.update(key, text === "" ? undefined : text);
  }

  /** A token belongs to one address, so that no other host ever gets it. */
  async token(url: string): Promise<string | undefined> {
    return url === "" ? undefined : this.context.secrets.get(secretOf(url));
  }

  async setToken(url: string, token: string): Promise<void> {
    if (token === "") {
      await this.context.secrets.delete(secretOf(url));
    } else {
      await this.context.secrets.store(secretOf(url), token);
    }
  }

  private get configuration(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration(SECTION);
  }

  /** A value that is no text is the server's to complain about. */
  private text(key: string): string {
    const value = this.configuration.get<unknown>(key);
    return typeof value === "string" ? value : "";
  }

  /** Whether code may go to another machine without encryption. */
  get allowsPlainHttp(): boolean {
    return this.configuration.get<unknown>("insecureHttp") === true;
  }

  private async update(key: string, value: unknown): Promise<void> {
    await this.configuration.update(key, value, vscode.ConfigurationTarget.Global);
  }
}

/** Opens the settings that a search finds; in a remote window those of its machine, as ours are. */
export async function showSettings(query: string): Promise<void> {
  const { executeCommand } = vscode.commands;
  await (vscode.env.remoteName === undefined
    ? executeCommand("workbench.action.openSettings", query)
    : executeCommand("workbench.action.openRemoteSettings", { query }));
}

function secretOf(url: string): string {
  return `token of ${url.replace(/\/+$/, "")}`;
}
