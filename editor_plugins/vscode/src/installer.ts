/** Installs the server with a person's consent: every command is shown before it runs. */

import { rm } from "node:fs/promises";
import * as vscode from "vscode";

import { onPath } from "./command";
import {
  asTyped,
  bundle,
  bundleSteps,
  complaint,
  fetched,
  findPython,
  installSteps,
  sizeOf,
  whyNotHere,
  type Step,
} from "./installation";
import { alone, isAtWork } from "./lock";
import { run } from "./process";
import { installing } from "./status";
import type { StatusItem } from "./statusItem";

export class Installer implements vscode.Disposable {
  private readonly lock: string; // a file
  private readonly stopper = new AbortController();
  private isAsking = false;

  constructor(
    private readonly environment: string,
    private readonly extensionFolder: string,
    private readonly output: vscode.LogOutputChannel,
    private readonly status: StatusItem,
  ) {
    this.lock = `${environment}.lock`;
  }

  /** Whether an installation runs on this machine, in this window or another. */
  get isAtWork(): boolean {
    return isAtWork(this.lock);
  }

  /**
   * Asks, prepares (which may refuse), installs `wanted` (or what came with the extension). Whether
   * anything has changed: a failed installation leaves no server. There is one at a time on a machine.
   */
  async install(wanted: string, prepare: () => Promise<boolean>): Promise<boolean> {
    if (this.isAsking || this.isAtWork) {
      await vscode.commands.executeCommand("notifications.showList"); // its progress is there
      return false;
    }
    this.isAsking = true;
    const steps = await this.plan(wanted).finally(() => (this.isAsking = false));
    if (steps === undefined) {
      return false;
    }
    return alone(this.lock, async () => (await prepare()) && this.runAll(steps));
  }

  /** The steps that a person agrees to. */
  private async plan(wanted: string): Promise<Step[] | undefined> {
    const objection = whyNotHere(process.platform, process.arch);
    const python = objection === undefined ? await findPython() : undefined;
    if (python === undefined) {
      const missing = "foregram needs Python 3.11 or newer with venv and pip, which was not found";
      tell(`${objection ?? `${missing} on your PATH`}.`);
      return undefined;
    }
    if (wanted !== "") {
      const steps = installSteps(python, this.environment, wanted);
      return (await consents(steps, "install a package of your choice")) ? steps : undefined;
    }
    const brought = bundle(this.extensionFolder);
    if (brought === undefined) {
      tell("This build of the extension brings no server: name one in foregram.server.package.");
      return undefined;
    }
    const hasGpu = onPath("nvidia-smi", process.env["PATH"] ?? "") !== undefined;
    const steps = bundleSteps(python, this.environment, brought, hasGpu);
    return (await consents(steps, sizeOf(hasGpu))) ? steps : undefined;
  }

  /** Runs the steps with their progress, and tells the reason where one failed. */
  private async runAll(steps: readonly Step[]): Promise<true> {
    const title = "Installing foregram";
    const location = vscode.ProgressLocation.Notification;
    const failure = await vscode.window.withProgress(
      { location, title, cancellable: true },
      async (bar, token) => {
        const stopped = new AbortController();
        token.onCancellationRequested(() => {
          stopped.abort();
        });
        const signal = AbortSignal.any([stopped.signal, this.stopper.signal]);
        for (const [number, step] of steps.entries()) {
          const report = (what: string): void => {
            const message = `Step ${number + 1} of ${steps.length}: ${what}`;
            bar.report({ message });
            this.status.show(installing(message));
          };
          report(step.title);
          const reason = await this.runStep(step, report, signal);
          if (signal.aborted || reason !== undefined) {
            await rm(this.environment, { recursive: true, force: true });
            this.output.error(signal.aborted ? "Installation cancelled" : String(reason));
            return signal.aborted ? undefined : reason;
          }
        }
        return undefined;
      },
    );
    if (failure !== undefined) {
      void tellFailure(failure);
    }
    return true;
  }

  /** The reason where it failed. */
  private async runStep(
    step: Step,
    report: (what: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    this.output.info(`> ${asTyped(step)}`);
    const wrong: string[] = [];
    const onLine = (line: string): void => {
      this.output.info(line);
      wrong.push(...[complaint(line)].flatMap((one) => one ?? []));
      report(fetched(line) ?? step.title);
    };
    const ended = await run(step.program, step.args, { onLine, signal });
    return ended.status === 0 ? undefined : (wrong.at(-1) ?? ended.lastLine);
  }

  dispose(): void {
    this.stopper.abort();
  }
}

async function tellFailure(failure: string): Promise<void> {
  const sentence = `foregram could not be installed: ${failure}`;
  if ((await vscode.window.showErrorMessage(sentence, "Show Logs")) !== undefined) {
    await vscode.commands.executeCommand("foregram.showLogs");
  }
}

/** `what`: what the commands do to the machine. */
async function consents(steps: readonly Step[], what: string): Promise<boolean> {
  const detail = [
    `These commands will run. They ${what} in the extension's own folder, and change nothing else.`,
    "The model's converted copy takes another 0.8 GB in the cache folder.\n\n",
    steps.map(asTyped).join("\n\n"),
  ].join(" ");
  const answer = await vscode.window.showInformationMessage(
    "Install the foregram server?",
    { modal: true, detail },
    "Install",
    "Copy the Commands",
  );
  if (answer === "Copy the Commands") {
    await vscode.env.clipboard.writeText(steps.map(asTyped).join("\n"));
  }
  return answer === "Install";
}

function tell(sentence: string): void {
  void vscode.window.showErrorMessage(sentence);
}
