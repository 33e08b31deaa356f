import { readFileSync } from 'node:fs'

/** The text of a file of the page, which the build has made. The package has the texts in the place of this function. */
export function pageFile(name: string): string {
  return readFileSync(new URL(`page/${name}`, import.meta.url), 'utf8')
}
