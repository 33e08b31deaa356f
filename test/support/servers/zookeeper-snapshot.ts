import { JuteWriter } from '../../../packages/zookeeper/src/jute-writer.js'

/** The path of a node, and the number of children created so far, from which the next children get their numbers. */
export type SnapshotNode = readonly [path: string, createdChildren: number]

const OPEN_ACL = 1n
const EVERYTHING = 31
const ZXID = 1n

/**
 * Returns the files from which a server starts as if it had these nodes, parents first. By itself, a server would need
 * billions of transactions to get into such a state.
 */
export function snapshotOf(nodes: readonly SnapshotNode[]): Readonly<Record<string, Buffer>> {
  const writer = new JuteWriter()
  // Magic, version, database; no sessions; one list of ACLs.
  writer.int(0x5a4b534e).int(2).long(-1n).int(0)
  writer.int(1).long(OPEN_ACL).int(1).int(EVERYTHING).text('world').text('anyone')
  const all: readonly SnapshotNode[] = [
    ['', 2],
    ['/zookeeper', 2],
    ['/zookeeper/quota', 0],
    ['/zookeeper/config', 0],
    ...nodes,
  ]
  for (const [path, createdChildren] of all) {
    writer.text(path).bytes(Buffer.alloc(0)).long(OPEN_ACL)
    writer.long(ZXID).long(ZXID).long(0n).long(0n)
    writer.int(0).int(createdChildren).int(0).long(0n).long(ZXID)
  }
  writer.text('/')
  const content = writer.frame().subarray(4)
  const seal = new JuteWriter()
    .long(BigInt(adler32(content)))
    .text('/')
    .frame()
    .subarray(4)
  return { [`data/version-2/snapshot.${ZXID.toString(16)}`]: Buffer.concat([content, seal]) }
}

/** The checksum of snapshots. */
function adler32(bytes: Buffer): number {
  const modulus = 65_521
  let [low, high] = [1, 0]
  for (const byte of bytes) {
    low = (low + byte) % modulus
    high = (high + low) % modulus
  }
  return high * 65_536 + low
}
