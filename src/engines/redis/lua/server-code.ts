import { createHash } from 'node:crypto'

/** Code in Lua that a server executes: as a function of a library that the server keeps, or as a script. */
export class ServerCode {
  /** Names the library and its function. Different code has another name, so versions do not meet. */
  readonly name: string
  readonly library: string
  readonly script: string
  /** The hash by which the server knows the script. */
  readonly sha: string

  /**
   * @param code gives a function of keys, arguments, and whether it runs as a script
   * @param flags of the function: `no-writes` for one that a replica executes, too
   */
  constructor(code: string, flags: readonly 'no-writes'[] = []) {
    const main = `local main = (function()\n${code}\nend)()\n`
    this.script = `${main}return main(KEYS, ARGV, true)\n`
    this.sha = createHash('sha1').update(this.script).digest('hex')
    this.name = `signalbox_${this.sha.slice(0, 16)}`
    const flagList = flags.map(flag => `'${flag}'`).join(', ')
    this.library =
      `#!lua name=${this.name}\n${main}redis.register_function{ function_name = '${this.name}', ` +
      `callback = main, flags = { ${flagList} } }\n`
  }
}

/**
 * Writes values in the place of their names, which are in capitals. A local variable would be looked for by each function
 * that uses it.
 */
export function withConstants(text: string, constants: Readonly<Record<string, string | number>>): string {
  const names = new RegExp(`\\b(?:${Object.keys(constants).join('|')})\\b`, 'g')
  return text.replace(names, name => String(constants[name]))
}
