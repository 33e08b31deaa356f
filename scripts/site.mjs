/**
 * Builds the site of the docs into `build-docs/site`, and fails if a link is dead. If the site is served under a path,
 * run `npm run docs -- --base /signalbox/`.
 */
import { readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { root, run, SetupError } from './command.mjs'
import { deadLinks } from './site-links.mjs'
import { sourcePages, writeSourcePages } from './site-sources.mjs'

const require = createRequire(import.meta.url)
const { values } = parseArgs({ options: { base: { type: 'string', default: '/' } } })

/**
 * @param {string} name name of a package
 * @param {string} program path of a program in the package
 * @param {...string} argv
 */
function runProgram(name, program, ...argv) {
  run(process.execPath, [join(dirname(require.resolve(`${name}/package.json`)), program), ...argv])
}

/** @param {string} folder */
function pagesIn(folder) {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter(name => name.endsWith('.md')).map(name => join(folder, name))
}

try {
  for (const folder of ['build-docs/api', 'build-docs/site', sourcePages])
    rmSync(join(root, folder), { recursive: true, force: true })
  runProgram('typedoc', 'bin/typedoc')
  const top = readdirSync(root).filter(name => name.endsWith('.md'))
  writeSourcePages([...top, ...['docs', 'examples', 'apps', 'bench', 'packages'].flatMap(pagesIn)])
  runProgram('vitepress', 'bin/vitepress.js', 'build', 'docs', '--base', values.base)
  const dead = deadLinks(join(root, 'build-docs/site'), values.base)
  if (dead.length > 0) throw new SetupError(`These links are dead:\n  ${dead.join('\n  ')}`)
} catch (error) {
  if (!(error instanceof SetupError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
