/** How much of a completion a person has taken word by word or line by line. No editor. */

/** An item as the server sent it, as far as its feedback needs it. */
export interface OfferedItem {
  readonly insertText: string;
  readonly command: { readonly command: string; readonly arguments: readonly unknown[] };
}

/** UTF-16 units from the start of the item's text that stand in the document; 0 for another text. */
export function acceptedLength(item: OfferedItem, inDocument: string): number {
  const taken = inDocument.replaceAll("\r\n", "\n");
  return item.insertText.replaceAll("\r\n", "\n").startsWith(taken) ? taken.length : 0;
}
