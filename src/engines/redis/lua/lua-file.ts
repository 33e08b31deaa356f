import { readFileSync } from 'node:fs'

/** The text of a file of Lua in this folder. The package has the texts in the place of this function. */
export function luaFile(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
}
