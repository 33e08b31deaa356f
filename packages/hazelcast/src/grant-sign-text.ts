/** The sign of a box that it still holds its grants. */
export interface GrantSign {
  /** Which of the signs of the session: a later one has a greater number. */
  readonly sign: number
  /** How often it was sent. */
  readonly count: number
  /** Whether another box has ended it. */
  readonly hasEnded: boolean
}

/** The key of the entry with the sign of a session, in the map of the table. */
export function grantSignKey(session: string): string {
  return `grants/${session}`
}

export function encodeGrantSign({ sign, count, hasEnded }: GrantSign): string {
  return JSON.stringify(hasEnded ? [sign, count, 1] : [sign, count])
}

/** Undefined for the text of another program. */
export function decodeGrantSign(text: string): GrantSign | undefined {
  try {
    const [sign, count, ended] = JSON.parse(text) as unknown[]
    if (!Number.isSafeInteger(sign) || !Number.isSafeInteger(count)) return undefined
    return { sign: sign as number, count: count as number, hasEnded: ended !== undefined }
  } catch {
    return undefined
  }
}
