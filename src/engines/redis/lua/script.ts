import { createHash } from 'node:crypto'

/** A script, and the hash by which the server knows it. */
export class Script {
  readonly text: string
  readonly sha: string

  constructor(text: string) {
    this.text = text
    this.sha = createHash('sha1').update(text).digest('hex')
  }
}

/**
 * Writes values in the place of their names, which are in capitals. A local variable of a script would be looked for by
 * each function that uses it.
 */
export function withConstants(text: string, constants: Readonly<Record<string, string | number>>): string {
  const names = new RegExp(`\\b(?:${Object.keys(constants).join('|')})\\b`, 'g')
  return text.replace(names, name => String(constants[name]))
}
