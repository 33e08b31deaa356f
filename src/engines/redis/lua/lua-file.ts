import { readFileSync } from 'node:fs'

/** Returns the text of a Lua file in this folder. The build replaces this module by one that contains the texts. */
export function luaFile(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
}
