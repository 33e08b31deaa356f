import { readFileSync } from 'node:fs'

/** Returns the text of a file of the page from the build. In the package, the texts replace this function. */
export function pageFile(name: string): string {
  return readFileSync(new URL(`page/${name}`, import.meta.url), 'utf8')
}
