import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import type { Block } from './blocks.js'
import { root } from './pages.js'

/**
 * The compiler treats the blocks as files of this folder, so that `signalbox` resolves to this package, and imports of
 * setup files work.
 */
const folder = join(root, 'test/docs/extracted')

/**
 * Output folder of the compiler. If an export of a package would be written into this folder, the compiler reads its
 * types from the sources.
 */
const dist = join(root, 'dist')

/** A compiled TypeScript block. */
export interface CompiledBlock {
  /** Errors of the compiler, each with page and line. Empty if there are none. */
  readonly problems: readonly string[]
  /** Path of the JavaScript file to run. */
  readonly program: string
}

/**
 * Checks the blocks and compiles them into `output` as one program, with the settings of this package. `output` must be
 * inside the checkout, so that `signalbox` resolves to this package at run time.
 */
export function compileBlocks(blocks: readonly Block[], output: string): Map<Block, CompiledBlock> {
  const sources = new Map(blocks.map(block => [join(folder, `${fileName(block)}.ts`), new Source(block)]))
  const setups = new Set(blocks.flatMap(({ setup }) => (setup === undefined ? [] : [join(root, setup)])))
  const program = createProgram(sources)
  const write: ts.WriteFileCallback = (path, text) => writeInto(join(output, relative(dist, path)), text)
  for (const path of setups) program.emit(program.getSourceFile(path), write)
  const compiled = new Map<Block, CompiledBlock>()
  for (const [path, source] of sources) {
    const file = program.getSourceFile(path)!
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    program.emit(file, write)
    compiled.set(source.block, {
      problems: diagnostics.map(diagnostic => source.describe(diagnostic)),
      program: join(output, relative(root, folder), `${fileName(source.block)}.js`),
    })
  }
  return compiled
}

/** Returns a name of a block by its page and line. */
export function fileName(block: Block): string {
  return `${block.page.replace(/\.md$/, '').replaceAll(/[^\w-]/g, '-')}-${block.line}`
}

/** The source of a block, with imports from its setup file. */
class Source {
  readonly text: string
  readonly #linesBefore: number

  constructor(readonly block: Block) {
    const preamble = block.setup === undefined ? '' : importAll(block.setup)
    this.text = preamble + block.code + '\n'
    this.#linesBefore = preamble.split('\n').length - 1
  }

  describe(diagnostic: ts.Diagnostic): string {
    const { file, start = 0, code, messageText } = diagnostic
    const line = file?.getLineAndCharacterOfPosition(start).line ?? 0
    const message = ts.flattenDiagnosticMessageText(messageText, '\n')
    return `${this.block.page}:${this.block.line + line - this.#linesBefore}: TS${code}: ${message}`
  }
}

/** Returns an import of everything that a setup file exports, under its own names. */
function importAll(setup: string): string {
  const file = ts.createSourceFile(setup, readFileSync(join(root, setup), 'utf8'), ts.ScriptTarget.ES2022)
  const names = file.statements.filter(isExported).flatMap(declaredNames)
  const path = relative(folder, join(root, setup)).replace(/\.ts$/, '.js')
  return `import { ${names.join(', ')} } from '${path}'\n`
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => (name as ts.Identifier).text)
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) return [statement.name!.text]
  return []
}

function writeInto(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function createProgram(sources: ReadonlyMap<string, Source>): ts.Program {
  const config = ts.readConfigFile(join(root, 'tsconfig.base.json'), path => ts.sys.readFile(path))
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
  options.outDir = dist
  // Only here and not for the whole checkout, because Nest is installed for test:all only.
  options.paths = { ...options.paths, 'signalbox-nestjs': ['./packages/nestjs/src/index.ts'] }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = path => sources.has(path) || fileExists(path)
  host.readFile = path => sources.get(path)?.text ?? readFile(path)
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const source = sources.get(path)
    return source === undefined
      ? getSourceFile(path, languageVersion, ...rest)
      : ts.createSourceFile(path, source.text, languageVersion)
  }
  return ts.createProgram([...sources.keys()], options, host)
}
