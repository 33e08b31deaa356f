/** Builds the page of the console into `dist`, where the modules of a clone find it: `node scripts/page.mjs`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { root } from './command.mjs'

const folder = 'src/console/page'

/**
 * Returns the files of the page by their names.
 * @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function pageFiles() {
  const bundle = await rolldown({
    cwd: root,
    input: join(root, folder, 'page.ts'),
    platform: 'browser',
    tsconfig: join(root, folder, 'tsconfig.json'),
    experimental: { attachDebugInfo: 'none' },
  })
  const { output } = await bundle.generate({ format: 'es', minify: true, comments: false })
  const [script] = output
  return {
    'page.html': read('page.html'),
    'page.css': read('page.css')
      .replaceAll(/^\s+/gm, '')
      .replaceAll(/: |;\n(?=\})/g, found => found.trim()),
    'page.js': script.code,
  }
}

/** @param {string} name of a file of the page */
function read(name) {
  return readFileSync(join(root, folder, name), 'utf8')
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const place = join(root, 'dist', folder)
  mkdirSync(place, { recursive: true })
  for (const [name, text] of Object.entries(await pageFiles())) writeFileSync(join(place, name), text)
}
