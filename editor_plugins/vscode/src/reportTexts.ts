/** The texts of reports, each by its path. A report that is opened anew begins anew. No editor. */

export class ReportTexts {
  private readonly texts = new Map<string, { text: string }>();

  /** `changed` is called with a path whose text is another one now. */
  constructor(private readonly changed: (path: string) => void) {}

  of(path: string): string {
    return this.texts.get(path)?.text ?? "";
  }

  /** Begins a report; the function adds a line to it, until it has begun anew. */
  begin(path: string, lines: readonly string[]): (line: string) => void {
    const report = { text: lines.map((line) => `${line}\n`).join("") };
    this.texts.set(path, report);
    this.changed(path);
    return (line) => {
      if (this.texts.get(path) === report) {
        report.text += `${line}\n`;
        this.changed(path);
      }
    };
  }
}
