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
import { Lock } from "./lock";
import { run } from "./process";
import type { Status } from "./status";

const ELSEWHERE_MS = 1000; // between two looks at an installation of another window

export class Installer implements vscode.Disposable {
  private readonly lock: Lock;
  private readonly stopper = new AbortController();
  private isAsking = false;
  private following: NodeJS.Timeout | undefined;

  /** `show` is told of an installation that runs, and at its end of none. */
  constructor(
    private readonly environment: string,
    private readonly extensionFolder: string,
    private readonly output: vscode.LogOutputChannel,
    private readonly show: (status: Status | undefined) => void,
  ) {
    this.lock = new Lock(`${environment}.lock`);
  }

  /**
   * Asks, prepares (which may refuse), installs `wanted` (or what came with the extension). Whether
   * anything has changed: a failed installation leaves no server. There is one at a time on a machine.
   */
  async install(wanted: string, prepare: () => Promise<boolean>): Promise<boolean> {
    if (this.isAsking) {
      await vscode.commands.executeCommand("notifications.showList"); // its progress is there
      return false;
    }
    this.isAsking = true;
    try {
      const steps = await this.plan(wanted);
      if (steps === undefined || !(await this.lock.take()) || !(await prepare())) {
        return false;
      }
      await this.runAll(steps);
      return true;
    } finally {
      await this.lock.release();
      this.isAsking = false;
      this.show(undefined);
    }
  }

  /** Whether another window installs; `then` is called at the end of that. */
  follow(then: () => unknown): boolean {
    if (this.lock.isHeld && !this.isAsking && this.following === undefined) {
      this.show(installing("another window installs the server"));
      this.following = setInterval(() => {
        if (!this.lock.isHeld) {
          clearInterval(this.following);
          this.following = undefined;
          this.show(undefined);
          void then();
        }
      }, ELSEWHERE_MS);
    }
    return this.following !== undefined;
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
    const hasGpu = onPath("nvidia-smi", process.env["PATH"] ?? "") !== undefined;
    if (wanted !== "") {
      const steps = installSteps(python, this.environment, wanted, hasGpu);
      return (await consents(steps, "install a package of your choice")) ? steps : undefined;
    }
    const brought = bundle(this.extensionFolder);
    if (brought === undefined) {
      tell("This build of the extension brings no server: name one in foregram.server.package.");
      return undefined;
    }
    const steps = bundleSteps(python, this.environment, brought, hasGpu);
    return (await consents(steps, sizeOf(hasGpu))) ? steps : undefined;
  }

  /** Runs the steps with their progress, and tells the reason where one failed. */
  private async runAll(steps: readonly Step[]): Promise<void> {
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
            this.show(installing(message));
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
  }

  /** The reason where it failed. */
  private async runStep(
    step: Step,
    report: (what: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    this.output.info(`> ${asTyped(step)}`);
    const attempt = async (args: readonly string[]): Promise<string | undefined> => {
      const wrong: string[] = [];
      const onLine = (line: string): void => {
        this.output.info(line);
        wrong.push(...[complaint(line)].flatMap((one) => one ?? []));
        report(fetched(line) ?? step.title);
      };
      const ended = await run(step.program, args, { onLine, signal });
      return ended.status === 0 ? undefined : (wrong.at(-1) ?? ended.lastLine);
    };
    const isDone = step.unless !== undefined && (await attempt(step.unless)) === undefined;
    return isDone || signal.aborted ? undefined : attempt(step.args);
  }

  dispose(): void {
    clearInterval(this.following);
    this.stopper.abort();
  }
}

function installing(what: string): Status {
  const remedy = { action: "install", title: "Show the Progress" };
  return {
    kind: "Normal",
    message: `Installing: ${what}`,
    busy: true,
    state: "installing",
    remedy,
  };
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
    "The model's converted copy takes another 0.7 GB in the cache folder.\n\n",
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
