const SLOTS = 16_384

/** CRC-16 of XMODEM, by which Redis Cluster finds the slot of a key. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** Returns the hash slot of a key on Redis Cluster. Only the part in the first braces counts, unless that is empty. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const bytes = Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)
  let crc = 0
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte]!
  return crc % SLOTS
}

let tags: readonly string[] | undefined

/** Returns a short hash tag that belongs to this slot, the same in every process. */
export function tagOf(slot: number): string {
  tags ??= findTags()
  return tags[slot]!
}

function findTags(): readonly string[] {
  const found: string[] = []
  let missing = SLOTS
  for (let number = 0; missing > 0; number++) {
    const text = number.toString(36)
    const slot = slotOf(text)
    if (found[slot] !== undefined) continue
    found[slot] = text
    missing--
  }
  return found
}
