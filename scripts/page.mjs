/** Builds the pages for browsers, which the modules of a clone read from `dist`: `node scripts/page.mjs`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { root } from './command.mjs'

/** Folder of the sources that all pages share. */
const kit = 'packages/console/src/page-kit/browser'
/** Folders of the pages, and the folders of their files. Each page has the entry `page.ts` and a style sheet. */
const folders = {
  'packages/console/src/page': 'packages/console/dist/page',
  'apps/trains/board/page': 'dist/apps/trains/board/page',
}

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
  for (const [folder, files] of Object.entries(folders)) {
    const place = join(root, files)
    mkdirSync(place, { recursive: true })
    for (const [name, text] of Object.entries(await pageFiles(folder))) writeFileSync(join(place, name), text)
  }
}
