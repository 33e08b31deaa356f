/**
 * Writes what `npm pack` packs into `dist` of a package, in place of the modules that run in a clone: `npm pack` runs it
 * with the folder of the package, and the next command in the clone compiles the modules again.
 *
 * A bundle is a third smaller than its modules: their imports go, and so do comments, also those in Lua and its
 * indentation, and the declarations that no entry leads to. Statements are shortened, and variables get short names,
 * which is another tenth. Lines stay, and the names of functions, classes, methods and properties, so a stack trace can
 * be read.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { root } from './command.mjs'

const [folder = '.'] = process.argv.slice(2)
const place = join(root, folder)

/** @type {{ type: string, exports: Record<string, { types?: string }> }} */
const { type, exports } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
const entries = Object.values(exports).flatMap(
  ({ types }) => types?.match(/^\.\/dist\/(.*)\.d\.ts$/)?.[1] ?? [],
)

/**
 * By the folder of the package: where its sources are, its programs, and a module that starts one of them, by their
 * places in the package.
 * @type {Readonly<Record<string, { sources: string, programs: Readonly<Record<string, string>> }>>}
 */
const packages = {
  '.': {
    sources: '.',
    programs: {
      'apps/signalbox': 'apps/published',
      'apps/chaos/command': 'apps/chaos/command',
      'apps/chaos/worker': 'apps/chaos/worker',
    },
  },
  'packages/conformance': {
    sources: 'src',
    programs: {
      'holder.process': 'holder.process',
      'leaver.process': 'leaver.process',
      'quiet.process': 'quiet.process',
    },
  },
  'packages/zookeeper': { sources: 'src', programs: {} },
  'packages/nestjs': { sources: 'src', programs: {} },
}
const { sources, programs } = /** @type {typeof packages[string]} */ (packages[folder])

/** Each file of the package that something begins with, and its source. */
const input = { ...Object.fromEntries(entries.map(path => [path, path])), ...programs }

/** @type {import('rolldown').Plugin} */
const texts = {
  name: 'texts',
  transform: {
    filter: { id: /\/(lua|sql)-file\.ts$/ },
    handler: (_, id) => textsModule(id),
  },
}
const declarations = { tsconfig: 'tsconfig.types.json' }

rmSync(join(place, 'dist'), { recursive: true, force: true })
if (type === 'module') {
  await write('es', texts, dts(declarations))
} else {
  await write('cjs', texts)
  await write('es', dts({ ...declarations, emitDtsOnly: true }))
}
for (const name of Object.keys(programs)) rmSync(join(place, 'dist', `${name}.d.ts`))

/**
 * @param {'es' | 'cjs'} format
 * @param {...import('rolldown').RolldownPluginOption} plugins
 */
async function write(format, ...plugins) {
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(
      Object.entries(input).map(([name, path]) => [name, join(place, sources, `${path}.ts`)]),
    ),
    platform: 'node',
    // Packages and modules of Node stay imports. Bundled are the helpers for newer syntax, which are not a package that a
    // user has, and what the fault harness takes from the conformance kit.
    external: /^(?!@oxc-project\/|signalbox-conformance$)[\w@]/,
    resolve: { alias: { 'signalbox-conformance': join(root, 'packages/conformance/src/index.ts') } },
    transform: { target: 'es2022' },
    // No comments that name modules.
    experimental: { attachDebugInfo: 'none' },
    plugins,
  })
  await bundle.write({
    dir: join(place, 'dist'),
    format,
    comments: false,
    minify: {
      // Node finds the names that CommonJS exports only in statements that are not shortened.
      compress: format === 'es',
      mangle: { toplevel: true, keepNames: { function: true, class: true } },
      codegen: false,
    },
    chunkFileNames: 'chunks/[name].js',
  })
}

/**
 * A module with the texts of a folder in the place of the one that reads them from their files.
 * @param {string} id the path of `lua-file.ts` or `sql-file.ts`
 */
function textsModule(id) {
  const extension = id.endsWith('lua-file.ts') ? 'lua' : 'sql'
  const texts = readdirSync(dirname(id)).flatMap(name => {
    if (!name.endsWith(`.${extension}`)) return []
    const text = readFileSync(join(dirname(id), name), 'utf8')
    return [[name.slice(0, -4), extension === 'lua' ? text.replace(/^\s*--.*\n|^[ \t]+/gm, '') : text]]
  })
  return `const texts = ${JSON.stringify(Object.fromEntries(texts))}
export const ${extension}File = name => texts[name]`
}
