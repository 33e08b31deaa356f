/** The sign by which a box shows that it still holds its grants. */
export interface GrantSign {
  /** The number of the sign within its session. A later sign has a greater number. */
  readonly sign: number
  /** The count of the session's signs when this one was sent. It increases each time. */
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

/** Returns undefined for the text of another program. */
export function decodeGrantSign(text: string): GrantSign | undefined {
  try {
    const [sign, count, ended] = JSON.parse(text) as unknown[]
    if (!Number.isSafeInteger(sign) || !Number.isSafeInteger(count)) return undefined
    return { sign: sign as number, count: count as number, hasEnded: ended !== undefined }
  } catch {
    return undefined
  }
}
