import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerProcess } from '../../apps/chaos/servers/server-process.js'
import { runProgram } from '../support/run-program.js'
import { startHazelcast } from '../support/servers/hazelcast.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import type { Block } from './blocks.js'
import { root } from './pages.js'
import { Clone, shellPrelude } from './shell-blocks.js'
import { compileBlocks, fileName, type CompiledBlock } from './typescript-blocks.js'

const timeLimit = 50_000
/** Languages of blocks that these tests do not run: output, foreign languages and schemas. */
const onlyShown = new Set(['text', 'sql', 'java', 'python', 'go', 'lua', 'mermaid', 'http', 'xml'])

interface Started {
  readonly server: ServerProcess
  /** Its address, in the form that replaces a reader's address in pages. */
  readonly address: string
}

/** Starts the server for each address that pages use. */
const serverStarts: ReadonlyMap<string, () => Promise<Started>> = new Map([
  ['redis://localhost:6379', () => startRedis().then(server => ({ server, address: server.url }))],
  ['localhost:2181', () => startZooKeeper().then(server => ({ server, address: server.address }))],
  ['postgres://localhost:5432/app', () => startPostgres().then(server => ({ server, address: server.url }))],
  ['localhost:5701', () => startHazelcast().then(server => ({ server, address: server.address }))],
])

/** Runs a block of each language, and returns its output. */
const runners: Readonly<Record<string, (block: Block) => Promise<string>>> = {
  ts: runTypeScript,
  js: runJavaScript,
  sh: runShell,
  bash: runShell,
  json: async ({ code }) => JSON.stringify(JSON.parse(code)),
}

const output = join(root, 'build-docs', String(process.pid))
const servers = new Map<string, Started>()
let compiled: Map<Block, CompiledBlock>
let clone: Clone | undefined

/** Registers a test for each block of code, which runs it and compares its output with the page. */
export function testBlocks(blocks: readonly Block[]): void {
  const runnable = blocks.filter(({ language, testedBy }) => language in runners && testedBy === undefined)

  beforeAll(async () => {
    const named = [...serverStarts].filter(([reader]) => runnable.some(({ code }) => code.includes(reader)))
    await Promise.all(named.map(async ([reader, start]) => servers.set(reader, await start())))
    mkdirSync(output, { recursive: true })
    compiled = compileBlocks(
      runnable.filter(({ language }) => language === 'ts'),
      output,
    )
    clone = new Clone()
  }, 120_000)

  afterAll(async () => {
    await Promise.all([...servers.values()].map(({ server }) => server.kill()))
    clone?.[Symbol.dispose]()
    rmSync(output, { recursive: true, force: true })
  })

  test('there are code blocks to run', () => {
    expect(runnable).not.toEqual([])
  })

  test('every code block says a language that is run or known to be only shown', () => {
    const unknown = blocks.filter(({ language }) => !(language in runners) && !onlyShown.has(language))
    expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([])
  })

  test('a block that another test runs names a test that reads its page', () => {
    for (const { page, testedBy } of blocks) {
      if (testedBy !== undefined) expect(readFileSync(join(root, testedBy), 'utf8')).toContain(page)
    }
  })

  test.for(runnable.map(block => [`${block.page}:${block.line} ${block.language}`, block] as const))(
    '%s',
    async ([, block]) => {
      const printed = await runners[block.language]!(block)
      if (block.output !== undefined) expect(printed).toMatch(new RegExp(block.output))
    },
  )
}

async function runTypeScript(block: Block): Promise<string> {
  const { problems, program } = compiled.get(block)!
  expect(problems).toEqual([])
  writeFileSync(program, onOurServers(readFileSync(program, 'utf8')))
  return runInEmptyFolder(program)
}

async function runJavaScript(block: Block): Promise<string> {
  const kind = /\brequire\(/.test(block.code) ? 'cjs' : 'mjs'
  const program = join(output, `${fileName(block)}.${kind}`)
  writeFileSync(program, onOurServers(block.code))
  return runInEmptyFolder(program)
}

async function runShell(block: Block): Promise<string> {
  const script = shellPrelude + onOurServers(block.code)
  return (await runProgram('bash', ['-c', script], { cwd: clone!.path, timeLimit })).stdout
}

/** Returns the code with the addresses of the started servers in place of a reader's. */
function onOurServers(code: string): string {
  let text = code
  for (const [reader, { address }] of servers) text = text.replaceAll(reader, address)
  return text
}

async function runInEmptyFolder(program: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
  try {
    return (await runProgram(process.execPath, [program], { cwd: folder, timeLimit })).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}
