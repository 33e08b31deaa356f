/**
 * Writes the guarantees that the boxes of each engine report into README.md and docs/guarantees.md. Run
 * `node scripts/guarantees.mjs` after `npm run build`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'signalbox'
import { withBlock } from './block.mjs'

/** The pages with a block of guarantees, and the function that generates each block. */
export const pages = [
  { path: below('README.md'), block: brief },
  { path: below('docs/guarantees.md'), block: whole },
]

/** @param {string} path */
function below(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}

/**
 * Returns a page with a new block.
 * @param {string} text text of the page
 * @param {(boxes: readonly Kind[]) => string} block
 * @param {readonly Kind[]} boxes
 */
export function withGuarantees(text, block, boxes) {
  return withBlock(text, 'guarantees', block(boxes))
}

/**
 * Returns the guarantees of each kind of box.
 * @returns {Promise<Kind[]>}
 */
export async function kinds() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-guarantees-'))
  try {
    return [
      { url: 'memory:', guarantees: await guaranteesOf('memory:'), shownIn: 'memory' },
      { url: 'file:./dir', guarantees: await guaranteesOf(`file:${folder}`), shownIn: 'file' },
      {
        url: 'file:./dir?durable=false',
        guarantees: await guaranteesOf(`file:${folder}?durable=false`),
        shownIn: 'file',
      },
      ...(await overNetwork()),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param {string} url */
async function guaranteesOf(url) {
  const box = await open(url)
  await box.close()
  return box.guarantees
}

/**
 * Returns the guarantees of the engines that have servers. Reads them from modules, because opening a box would need
 * these servers.
 * @returns {Promise<Kind[]>}
 */
async function overNetwork() {
  /** @type {{ redisGuarantees: Guarantees }} */
  const { redisGuarantees } = await import(built('engines/redis/guarantees.js'))
  /** @type {{ quorumGuarantees: Guarantees }} */
  const { quorumGuarantees } = await import(packed('redis-quorum/dist/guarantees.js'))
  /** @type {{ postgresGuarantees: Guarantees }} */
  const { postgresGuarantees } = await import(built('engines/postgres/guarantees.js'))
  /** @type {{ ZOOKEEPER_GUARANTEES: Guarantees }} */
  const { ZOOKEEPER_GUARANTEES: zookeeperGuarantees } = await import(
    packed('zookeeper/dist/engine/guarantees.js')
  )
  /** @type {{ hazelcastGuarantees: Guarantees }} */
  const { hazelcastGuarantees } = await import(packed('hazelcast/dist/guarantees.js'))
  return [
    { url: 'redis://host', guarantees: redisGuarantees, shownIn: 'redis' },
    { url: 'redis+cluster://host,host', guarantees: redisGuarantees, shownIn: 'redis-cluster' },
    { url: 'redis-quorum://host,host,host', guarantees: quorumGuarantees, shownIn: 'quorum' },
    { url: 'postgres://host/database', guarantees: postgresGuarantees, shownIn: 'postgres' },
    { url: 'zookeeper://host,host,host', guarantees: zookeeperGuarantees, shownIn: 'zookeeper' },
    { url: 'hazelcast://host', guarantees: hazelcastGuarantees, shownIn: 'hazelcast' },
  ]
}

/** @param {string} module */
function built(module) {
  return new URL(`../dist/src/${module}`, import.meta.url).href
}

/** @param {string} module path of a module of another package of this repository */
function packed(module) {
  return new URL(`../packages/${module}`, import.meta.url).href
}

/** @typedef {import('signalbox').Guarantees} Guarantees */
/**
 * `shownIn` is the fixture of the contract tests that shows the weaknesses.
 * @typedef {{ url: string, guarantees: Guarantees, shownIn: string }} Kind
 */

/** @satisfies {Record<Guarantees['deadHolder'], string>} */
const freed = { 'at once': 'at once', lease: 'on lease expiry', 'session timeout': 'on session timeout' }

/** @satisfies {Record<Guarantees['durability'], string>} */
const kept = {
  none: 'none',
  process: 'lost when the process exits',
  'process crash': 'survive a process crash',
  'power loss': 'survive a power failure',
  replication: 'survive if replicated',
}

/** @type {{ PROMISES: Readonly<Record<import('signalbox').PromiseId, string>> }} */
const { PROMISES: promises } = await import(built('base/promises.js'))

/**
 * The name of each engine in README and the page about it, by the scheme of its URL.
 * @type {Partial<Record<string, { name: string, page: string }>>}
 */
const engines = {
  memory: { name: 'memory', page: 'docs/memory.md' },
  file: { name: 'file', page: 'docs/file.md' },
  redis: { name: 'Redis', page: 'docs/redis.md' },
  'redis+cluster': { name: 'Redis Cluster', page: 'docs/redis.md' },
  'redis-quorum': { name: 'Redis quorum', page: 'packages/redis-quorum/README.md' },
  postgres: { name: 'PostgreSQL', page: 'docs/postgres.md' },
  zookeeper: { name: 'ZooKeeper', page: 'docs/zookeeper.md' },
  hazelcast: { name: 'Hazelcast', page: 'packages/hazelcast/README.md' },
}

/** @param {Kind} box */
function engineOf({ url }) {
  const engine = engines[url.slice(0, url.indexOf(':'))]
  if (engine === undefined) throw new Error(`${url} has no name for README`)
  return engine
}

/**
 * Consequences of a weakened promise.
 * @type {Partial<Record<string, string>>}
 */
const consequences = {
  P1: 'two clients hold the same lock, for example after a failover or data loss',
  P2: 'a later grant has a smaller token, after data loss',
  P4: 'a later caller is served first',
  P5: 'a waiter wakes too early, or polls ten times a second',
  P9: 'a stopped or dead process blocks others for longer than its lease',
  P11: 'a lock ends early because a wall clock was set forward',
  P13: 'a committed value is lost, or values are not supported',
}

/**
 * Returns the block of README: the consequences with the engines that have them, and a table of the engines. Omits
 * boxes whose URL has options.
 * @param {readonly Kind[]} boxes
 */
function brief(boxes) {
  const plain = boxes.filter(({ url }) => !url.includes('?'))
  const weakened = Object.keys(promises).filter(promise => plain.some(box => weakens(box, promise)))
  return [
    '| what can go wrong | on |',
    '|-|-|',
    ...weakened.map(promise => {
      const names = plain.filter(box => weakens(box, promise)).map(box => engineOf(box).name)
      const on = names.join(', ').replace('Redis, Redis Cluster, Redis quorum', 'all Redis engines')
      return `| ${consequence(promise)} | ${on} |`
    }),
    '',
    '| engine | shared by callers on the same | locks of a dead process are freed | committed values |',
    '|-|-|-|-|',
    ...plain.map(box => {
      const { name, page } = engineOf(box)
      const { scope, deadHolder, durability } = box.guarantees
      return `| [${name}](${page}) \`${box.url}\` | ${scope} | ${freed[deadHolder]} | ${kept[durability]} |`
    }),
    '',
  ].join('\n')
}

/**
 * @param {Kind} box
 * @param {string} promise
 */
function weakens({ guarantees: { weaknesses } }, promise) {
  return weaknesses.some(weakness => weakness.promise === promise)
}

/** @param {string} promise */
function consequence(promise) {
  const text = consequences[promise]
  if (text === undefined) throw new Error(`README does not know what can happen where ${promise} is weakened`)
  return text
}

/**
 * Returns the block of docs/guarantees.md: a table of all kinds of box, and a description of each weakness.
 * @param {readonly Kind[]} boxes
 */
function whole(boxes) {
  return [...table(boxes), '', ...listed(boxes), ''].join('\n')
}

/** @param {readonly Kind[]} boxes */
function table(boxes) {
  return [
    '| URL | shared by callers on the same | locks of a dead process are freed | committed values | weakened |',
    '|-|-|-|-|-|',
    ...boxes.map(row),
  ]
}

/** @param {Kind} box */
function row({ url, guarantees: { scope, deadHolder, durability, weaknesses } }) {
  const weakened = weaknesses.map(({ promise }) => promise).join(', ') || 'nothing'
  return `| \`${url}\` | ${scope} | ${freed[deadHolder]} | ${kept[durability]} | ${weakened} |`
}

/**
 * Returns a list with each weakness once, below the URLs of the boxes that have it.
 * @param {readonly Kind[]} boxes
 */
function listed(boxes) {
  /** @type {Map<string, Kind[]>} */
  const sharing = new Map()
  for (const box of boxes) {
    for (const { promise, how } of box.guarantees.weaknesses) {
      const weakness = `**${promise}**: ${how}`
      sharing.set(weakness, [...(sharing.get(weakness) ?? []), box])
    }
  }
  /** @type {Map<string, string[]>} */
  const groups = new Map()
  for (const [weakness, having] of sharing) {
    const urls = having.map(({ url }) => `\`${url}\``).join(', ')
    const fixtures = [
      ...new Set(having.map(({ shownIn }) => `[tests](../test/contract/${shownIn}-fixture.ts)`)),
    ]
    const heading = `- ${urls} (${fixtures.join(', ')})`
    groups.set(heading, [...(groups.get(heading) ?? []), ...wrapped(`- ${weakness}`, '  ')])
  }
  return [...groups].flatMap(([heading, lines]) => [...wrapped(heading, ''), ...lines])
}

/**
 * Returns the lines of an item of a list.
 * @param {string} item
 * @param {string} indent
 */
function wrapped(item, indent) {
  /** @type {string[]} */
  const lines = []
  let line = indent
  for (const word of item.split(' ')) {
    if (line.length + word.length > 120) {
      lines.push(line.trimEnd())
      line = `${indent}  `
    }
    line += `${word} `
  }
  return [...lines, line.trimEnd()]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const boxes = await kinds()
  for (const { path, block } of pages)
    writeFileSync(path, withGuarantees(readFileSync(path, 'utf8'), block, boxes))
}
