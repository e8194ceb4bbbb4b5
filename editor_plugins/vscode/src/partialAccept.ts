/** How much of a completion a person has taken word by word or line by line. No editor. */

/** An item as the server sent it, as far as its feedback needs it. */
export interface OfferedItem {
  readonly insertText: string;
  readonly command: { readonly command: string; readonly arguments: readonly unknown[] };
}

/** UTF-16 units from the start of the item's text that stand in the document now. */
export function acceptedLength(item: OfferedItem, inDocument: string): number {
  const text = item.insertText.replaceAll("\r\n", "\n");
  const taken = inDocument.replaceAll("\r\n", "\n");
  let length = 0;
  while (length < text.length && text[length] === taken[length]) {
    length += 1;
  }
  return length;
}
