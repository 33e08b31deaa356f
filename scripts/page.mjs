/** Builds the pages for browsers into `dist`, from which the modules of a clone read them: `node scripts/page.mjs`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { root } from './command.mjs'

/** Folder of the sources that all pages share. */
const kit = 'src/page-kit/browser'
/** Folders of the pages. Each contains the entry `page.ts` and a style sheet. */
const folders = ['src/console/page', 'apps/trains/board/page']

/**
 * Returns the files of a page, by name.
 * @param {string} folder
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function pageFiles(folder) {
  const bundle = await rolldown({
    cwd: root,
    input: join(root, folder, 'page.ts'),
    platform: 'browser',
    tsconfig: join(root, 'tsconfig.pages.json'),
    experimental: { attachDebugInfo: 'none' },
  })
  const { output } = await bundle.generate({ format: 'es', minify: true, comments: false })
  const [script] = output
  return {
    'page.html': read(kit, 'page.html'),
    'page.css': `${read(kit, 'look.css')}${read(folder, 'page.css')}`
      .replaceAll(/^\s+/gm, '')
      .replaceAll(/: |;\n(?=\})/g, found => found.trim()),
    'page.js': script.code,
  }
}

/**
 * @param {string} folder
 * @param {string} name name of a file
 */
function read(folder, name) {
  return readFileSync(join(root, folder, name), 'utf8')
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const folder of folders) {
    const place = join(root, 'dist', folder)
    mkdirSync(place, { recursive: true })
    for (const [name, text] of Object.entries(await pageFiles(folder))) writeFileSync(join(place, name), text)
  }
}
