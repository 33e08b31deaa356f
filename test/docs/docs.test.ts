import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Block } from './blocks.js'
import { readAllBlocks, root } from './pages.js'
import { Clone, shellPrelude } from './shell-blocks.js'
import { compileBlocks, fileName, type CompiledBlock } from './typescript-blocks.js'

const timeLimit = 50_000
/** Output, foreign languages and schemata: there is nothing here that could run them. */
const onlyShown = new Set(['text', 'sql', 'java', 'python', 'lua', 'mermaid', 'http'])

const checks: Readonly<Record<string, (block: Block) => void>> = {
  ts: runTypeScript,
  js: runJavaScript,
  sh: runShell,
  bash: runShell,
  json: block => void JSON.parse(block.code),
}

const blocks = readAllBlocks()
const checkedBlocks = blocks.filter(({ language }) => language in checks)
const output = join(root, 'build-docs', String(process.pid))
let compiled: Map<Block, CompiledBlock>
let clone: Clone

beforeAll(() => {
  mkdirSync(output, { recursive: true })
  compiled = compileBlocks(
    blocks.filter(({ language }) => language === 'ts'),
    output,
  )
  clone = new Clone()
})

afterAll(() => {
  clone[Symbol.dispose]()
  rmSync(output, { recursive: true, force: true })
})

test('every code block says a language that is checked or known not to be', () => {
  const unknown = blocks.filter(({ language }) => !(language in checks) && !onlyShown.has(language))
  expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([])
})

test.for(checkedBlocks.map(block => [`${block.page}:${block.line} ${block.language}`, block] as const))(
  '%s',
  ([, block]) => checks[block.language]!(block),
)

function runTypeScript(block: Block): void {
  const { problems, program } = compiled.get(block)!
  expect(problems).toEqual([])
  runInEmptyFolder(program)
}

function runJavaScript(block: Block): void {
  const kind = /\brequire\(/.test(block.code) ? 'cjs' : 'mjs'
  const program = join(output, `${fileName(block)}.${kind}`)
  writeFileSync(program, block.code)
  runInEmptyFolder(program)
}

function runShell(block: Block): void {
  run('bash', ['-c', shellPrelude + block.code], clone.path)
}

function runInEmptyFolder(program: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
  try {
    run(process.execPath, [program], folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function run(command: string, argv: string[], cwd: string): void {
  const { status, signal, stdout, stderr } = spawnSync(command, argv, {
    cwd,
    encoding: 'utf8',
    timeout: timeLimit,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  expect(signal ?? status, `${stdout}\n${stderr}`).toBe(0)
}
