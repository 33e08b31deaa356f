import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../run-program.js'
import { startPostgres, type PostgresServer } from '../servers/postgres.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import { startHazelcast, type HazelcastServer } from '../servers/hazelcast.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import type { Block } from './blocks.js'
import { readAllBlocks, root } from './pages.js'
import { Clone, shellPrelude } from './shell-blocks.js'
import { compileBlocks, fileName, type CompiledBlock } from './typescript-blocks.js'

const timeLimit = 50_000
/** Output, foreign languages and schemata: there is nothing here that could run them. */
const onlyShown = new Set(['text', 'sql', 'java', 'python', 'go', 'lua', 'mermaid', 'http', 'xml'])

/** Each gives what the block has printed. */
const checks: Readonly<Record<string, (block: Block) => Promise<string>>> = {
  ts: runTypeScript,
  js: runJavaScript,
  sh: runShell,
  bash: runShell,
  json: async ({ code }) => JSON.stringify(JSON.parse(code)),
}

/** Where a reader's server is; blocks run against one that is started here. */
const readersRedis = 'redis://localhost:6379'
const readersZooKeeper = 'localhost:2181'
const readersPostgres = 'postgres://localhost:5432/app'
const readersHazelcast = 'localhost:5701'

const blocks = readAllBlocks()
const checkedBlocks = blocks.filter(({ language }) => language in checks)
const output = join(root, 'build-docs', String(process.pid))
let compiled: Map<Block, CompiledBlock>
let clone: Clone
let redis: RedisServer
let zookeeper: ZooKeeperServer
let postgres: PostgresServer
let hazelcast: HazelcastServer

beforeAll(async () => {
  ;[redis, zookeeper, postgres, hazelcast] = await Promise.all([
    startRedis(),
    startZooKeeper(),
    startPostgres(),
    startHazelcast(),
  ])
  mkdirSync(output, { recursive: true })
  compiled = compileBlocks(
    blocks.filter(({ language }) => language === 'ts'),
    output,
  )
  clone = new Clone()
}, 120_000)

afterAll(async () => {
  await Promise.all([redis.stop(), zookeeper.kill(), postgres.kill(), hazelcast.kill()])
  clone[Symbol.dispose]()
  rmSync(output, { recursive: true, force: true })
})

test('every code block says a language that is checked or known not to be', () => {
  const unknown = blocks.filter(({ language }) => !(language in checks) && !onlyShown.has(language))
  expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([])
})

test.for(checkedBlocks.map(block => [`${block.page}:${block.line} ${block.language}`, block] as const))(
  '%s',
  async ([, block]) => {
    const printed = await checks[block.language]!(block)
    if (block.output !== undefined) expect(printed).toMatch(new RegExp(block.output))
  },
)

async function runTypeScript(block: Block): Promise<string> {
  const { problems, program } = compiled.get(block)!
  expect(problems).toEqual([])
  writeFileSync(program, onOurServer(readFileSync(program, 'utf8')))
  return runInEmptyFolder(program)
}

async function runJavaScript(block: Block): Promise<string> {
  const kind = /\brequire\(/.test(block.code) ? 'cjs' : 'mjs'
  const program = join(output, `${fileName(block)}.${kind}`)
  writeFileSync(program, onOurServer(block.code))
  return runInEmptyFolder(program)
}

async function runShell(block: Block): Promise<string> {
  const script = shellPrelude + onOurServer(block.code)
  return (await runProgram('bash', ['-c', script], { cwd: clone.path, timeLimit })).stdout
}

function onOurServer(code: string): string {
  return code
    .replaceAll(readersRedis, redis.url)
    .replaceAll(readersZooKeeper, zookeeper.address)
    .replaceAll(readersPostgres, postgres.url)
    .replaceAll(readersHazelcast, hazelcast.address)
}

async function runInEmptyFolder(program: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
  try {
    return (await runProgram(process.execPath, [program], { cwd: folder, timeLimit })).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}
