import { createHash } from 'node:crypto'

/** Lua code that a server executes: as a function of a loaded library, or as a script. */
export class ServerCode {
  /**
   * The name of the library and of its function. It depends on the code, so versions do not replace each other's code.
   */
  readonly name: string
  readonly library: string
  readonly script: string
  /** The SHA-1 hash of the script, for `EVALSHA`. */
  readonly sha: string

  /**
   * @param code returns a function of the keys, the arguments, and whether it runs as a script
   * @param flags of the function. A replica executes only functions with `no-writes`, and rejects all others.
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
 * Replaces the names of constants, which are in capitals, by their values. A local variable would cost a lookup each
 * time that Lua creates a function which uses it.
 */
export function withConstants(text: string, constants: Readonly<Record<string, string | number>>): string {
  const names = new RegExp(`\\b(?:${Object.keys(constants).join('|')})\\b`, 'g')
  return text.replace(names, name => String(constants[name]))
}
