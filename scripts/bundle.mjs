/**
 * Bundles a package for `npm pack` into its folder `dist`, in place of the modules that run in a clone. `npm pack` runs
 * this script with the folder of the package. The next command in the clone compiles the modules again.
 *
 * A bundle is a third smaller than its modules. It has no imports between modules, no comments, also not in SQL and
 * Lua, no indentation of Lua, and no declarations that no entry uses. Shorter statements and variable names save
 * another tenth. Lines and the names of functions, classes, methods and properties stay, so that stack traces are
 * readable.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { root } from './command.mjs'
import { pageFiles } from './page.mjs'

const [folder = '.'] = process.argv.slice(2)
const place = join(root, folder)

/**
 * @typedef {{ types?: string, default?: string }} Target
 * @type {{
 *   type: string
 *   exports: Record<string, Target & { import?: Target, require?: Target }>
 *   peerDependenciesMeta?: Record<string, { optional: boolean }>
 * }}
 */
const {
  type,
  exports,
  peerDependenciesMeta = {},
} = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
/** Matches a call that requires one of the optional packages. */
const optional = new RegExp(
  `\\brequire\\((["'](?:${Object.keys(peerDependenciesMeta).join('|')})(?:/[\\w/]+)?["'])\\)`,
  'g',
)
const entries = Object.values(exports).flatMap(
  ({ types, import: module }) => (types ?? module?.types)?.match(/^\.\/dist\/(.*)\.d\.ts$/)?.[1] ?? [],
)
/**
 * Whether CommonJS can require the package on a runtime that can't require an ES module. Then the code is CommonJS, and
 * the ES modules re-export it, so that a process has one copy of it.
 */
const isBoth = Object.values(exports).some(target => target.require)

/**
 * The folder of the sources of each package, and its programs, by the folder of the package. `programs` maps the output
 * of each program, relative to `dist`, to its source. These paths have no extension.
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
  'packages/console': { sources: 'src', programs: {} },
  'packages/hazelcast': { sources: 'src', programs: {} },
  'packages/lockfile': { sources: 'src', programs: {} },
  'packages/redis-quorum': { sources: 'src', programs: {} },
  'packages/zookeeper': { sources: 'src', programs: {} },
  'packages/nestjs': { sources: 'src', programs: {} },
}
const { sources, programs } = /** @type {typeof packages[string]} */ (packages[folder])

/** @type {import('rolldown').InputOptions} */
const inputOptions = {
  cwd: root,
  platform: 'node',
  // Packages and modules of Node stay imports. The bundle includes the helpers for newer syntax, because users do not
  // install their package, and the parts of the conformance kit that the fault harness uses.
  external: /^(?!@oxc-project\/|signalbox-conformance$)[\w@]/,
  resolve: { alias: { 'signalbox-conformance': join(root, 'packages/conformance/src/index.ts') } },
  transform: { target: 'es2022' },
  // Omits the comments that name modules.
  experimental: { attachDebugInfo: 'none' },
}
const dist = join(place, 'dist')
rmSync(dist, { recursive: true, force: true })
await writeCode()
await writeDeclarations()

async function writeCode() {
  const bundle = await rolldown({
    ...inputOptions,
    input: inputOf({ ...Object.fromEntries(entries.map(path => [path, path])), ...programs }),
    plugins: [
      {
        name: 'texts',
        transform: {
          filter: { id: /\/(lua|sql|page)-file\.ts$/ },
          handler: (_, id) => (id.endsWith('/page-file.ts') ? pageModule() : textsModule(id)),
        },
      },
      { name: 'plain-commonjs', renderChunk: plainCommonJs },
    ],
  })
  const extension = isBoth ? 'cjs' : 'js'
  const { output } = await bundle.write({
    dir: dist,
    format: isBoth || type === 'commonjs' ? 'cjs' : 'es',
    exports: 'named',
    // Jest runs CommonJS in a context without import().
    dynamicImportInCjs: false,
    comments: false,
    minify: {
      compress: true,
      mangle: { toplevel: true, keepNames: { function: true, class: true } },
      codegen: false,
    },
    entryFileNames: `[name].${extension}`,
    chunkFileNames: `chunks/[name].${extension}`,
  })
  if (!isBoth) return
  for (const chunk of output) {
    if (chunk.type !== 'chunk' || !chunk.isEntry) continue
    const code = `'./${basename(chunk.fileName)}'`
    const names = chunk.exports.filter(name => name !== 'default')
    const lines = [
      ...(/^#!.*/.exec(chunk.code) ?? []),
      names.length > 0 ? `export { ${names.join(', ')} } from ${code}` : `import ${code}`,
      // An ES module sees the object with all exports as the default export of CommonJS.
      ...(chunk.exports.includes('default') ? [`import all from ${code}`, `export default all.default`] : []),
    ]
    writeFileSync(join(dist, `${chunk.name}.js`), `${lines.join('\n')}\n`)
  }
}

async function writeDeclarations() {
  const bundle = await rolldown({
    ...inputOptions,
    input: inputOf(Object.fromEntries(entries.map(path => [path, path]))),
    plugins: [dts({ tsconfig: 'tsconfig.types.json', emitDtsOnly: true })],
  })
  const output = { dir: dist, chunkFileNames: 'chunks/[name].js' }
  if (!isBoth) {
    await bundle.write(output)
    return
  }
  for (const chunk of (await bundle.generate(output)).output) {
    if (chunk.type !== 'chunk') continue
    const path = join(dist, chunk.fileName.replace(/\.d\.ts$/, '.d.cts'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, chunk.code.replaceAll(/(["']\.[^"']*)\.js(?=["'])/g, '$1.cjs'))
    if (!chunk.isEntry) continue
    const code = `'./${basename(path, '.d.cts')}.cjs'`
    const main = /(\w+) as default/.exec(chunk.code)?.[1]
    const lines = [`export * from ${code}`]
    // Exports the name, so that the default export of a class is also a type.
    if (main && chunk.exports.includes(main)) lines.push(`export { ${main} as default } from ${code}`)
    else if (main) lines.push(`import all from ${code}`, 'export default all.default')
    writeFileSync(join(dist, chunk.fileName), `${lines.join('\n')}\n`)
  }
}

/** @param {Readonly<Record<string, string>>} paths sources without their extensions, by the names of their outputs */
function inputOf(paths) {
  return Object.fromEntries(
    Object.entries(paths).map(([name, path]) => [name, join(place, sources, `${path}.ts`)]),
  )
}

/**
 * Changes the CommonJS code of a bundle in three ways.
 * It exports values instead of getters, because no export changes, and getters take a sixth of the time of a free lock.
 * Node also does not find the names of getters in minified code.
 * It takes the modules of Node from `process`, and handles a missing `__filename`, because bundlers of users may put
 * the code into an ES module, which has neither `require` nor `__filename`.
 * It wraps calls that require optional packages in `try`, because bundlers otherwise fail if such a package is not
 * installed.
 * @param {string} code
 */
function plainCommonJs(code) {
  const getter =
    /Object\.defineProperty\(exports, (['"]\w+['"]), \{\s*enumerable: true,\s*get: function ?\(\) \{\s*return (\w+);\s*\}\s*\}\);/g
  return code
    .replaceAll(getter, 'exports[$1] = $2;')
    .replaceAll(/\brequire\((['"]node:[\w/]+['"])\)/g, 'process.getBuiltinModule($1)')
    .replaceAll(
      /\brequire\(['"]url['"]\)\.pathToFileURL\(__filename\)\.href/g,
      '(typeof __filename === "string" ? process.getBuiltinModule("node:url").pathToFileURL(__filename).href : "")',
    )
    .replaceAll(optional, '(() => { try { return require($1) } catch (error) { throw error } })()')
}

/** Returns a module with the files of the console's page. It replaces the module that reads them. */
async function pageModule() {
  return `const texts = ${JSON.stringify(await pageFiles('packages/console/src/page'))}
export const pageFile = name => texts[name]`
}

/**
 * Returns a module with the texts of a folder. It replaces the module that reads them from their files.
 * @param {string} id the path of `lua-file.ts` or `sql-file.ts`
 */
function textsModule(id) {
  const extension = id.endsWith('lua-file.ts') ? 'lua' : 'sql'
  const texts = readdirSync(dirname(id)).flatMap(name => {
    if (!name.endsWith(`.${extension}`)) return []
    const text = readFileSync(join(dirname(id), name), 'utf8').replaceAll(/^\s*--.*\n/gm, '')
    return [[name.slice(0, -4), extension === 'lua' ? text.replaceAll(/^[ \t]+/gm, '') : text]]
  })
  return `const texts = ${JSON.stringify(Object.fromEntries(texts))}
export const ${extension}File = name => texts[name]`
}
