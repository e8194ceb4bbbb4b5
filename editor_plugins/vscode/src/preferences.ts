/** VS Code's settings and secrets, as the extension reads and writes them. */

import * as vscode from "vscode";

import { chosenSettings, SECTION, serverKeys, type Settings } from "./settings";
import type { Switches } from "./status";

const ACCEPT_COMMAND = "foregram.accept";

interface Manifest {
  readonly version: string;
  readonly contributes: { readonly configuration: readonly { readonly properties: Settings }[] };
}

export class Preferences {
  readonly version: string;
  /** Settings that a person makes and no workspace: the server takes them when it starts. */
  readonly own: readonly string[];
  private readonly keys: readonly string[];

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
    const chosen = {
      ...chosenSettings(this.configuration, this.keys),
      acceptCommand: ACCEPT_COMMAND, // VS Code runs it, so nobody else may name one
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

  get switches(): Switches {
    const languages = this.configuration.get<unknown>("languages");
    const editor = vscode.workspace.getConfiguration("editor.inlineSuggest");
    return {
      ghostText: editor.get("enabled") !== false,
      enable: this.configuration.get<unknown>("enable") !== false,
      languages: typeof languages === "object" && languages !== null ? { ...languages } : {},
    };
  }

  /** Whether ghost text may appear in a document by itself. */
  isCompleted(document: vscode.TextDocument): boolean {
    const { enable, languages } = this.switches;
    const editor = vscode.workspace.getConfiguration("editor.inlineSuggest", document);
    const ghostText = editor.get("enabled") !== false;
    return ghostText && enable && languages[document.languageId] !== false;
  }

  get hostUrl(): string {
    return this.text("hostUrl");
  }

  get model(): string {
    return this.text("model");
  }

  /** For the workspace where there is one: what a person does "here" should not follow them. */
  async enableHere(enable: boolean): Promise<void> {
    const { Global, Workspace } = vscode.ConfigurationTarget;
    const hasWorkspace = vscode.workspace.workspaceFolders !== undefined;
    await this.configuration.update("enable", enable, hasWorkspace ? Workspace : Global);
  }

  /** Whether completion is on where no workspace says otherwise. */
  get isEnabledEverywhere(): boolean {
    return this.configuration.inspect("enable")?.globalValue !== false;
  }

  /** For all workspaces, this one included. */
  async enableEverywhere(enable: boolean): Promise<void> {
    await this.update("enable", enable);
    if (this.configuration.inspect("enable")?.workspaceValue !== undefined) {
      const target = vscode.ConfigurationTarget.Workspace;
      await this.configuration.update("enable", undefined, target);
    }
  }

  /** Where it is switched now: by the workspace, or else by the person. */
  async setLanguage(language: string, enable: boolean): Promise<void> {
    const at = this.configuration.inspect<Record<string, boolean>>("languages");
    const { Global, Workspace } = vscode.ConfigurationTarget;
    const isOfWorkspace = at?.workspaceValue !== undefined && language in at.workspaceValue;
    const former = isOfWorkspace ? at.workspaceValue : at?.globalValue;
    const target = isOfWorkspace ? Workspace : Global;
    await this.configuration.update("languages", { ...former, [language]: enable }, target);
  }

  async setHostUrl(url: string): Promise<void> {
    await this.update("hostUrl", url === "" ? undefined : url);
  }

  async setModel(model: string): Promise<void> {
    await this.update("model", model === "" ? undefined : model);
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

  private async update(key: string, value: unknown): Promise<void> {
    await this.configuration.update(key, value, vscode.ConfigurationTarget.Global);
  }
}

function secretOf(url: string): string {
  return `token of ${url.replace(/\/+$/, "")}`;
}
