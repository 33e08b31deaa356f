import { RedisReplyError, type Reply } from './connection.js'

/** Brings the answer of a client package, or its error reply, into one form, whichever package and protocol. */
export function plain(answer: Promise<unknown>): Promise<Reply> {
  return answer.then(plainReply, (error: unknown) => {
    throw plainError(error)
  })
}

/**
 * Maps become lists of keys and values in turn, sets lists, doubles text, booleans 0 and 1, bytes text.
 */
export function plainReply(reply: unknown): Reply {
  if (typeof reply === 'string' || typeof reply === 'number' || reply === null) return reply
  if (Array.isArray(reply)) return reply.every(isPlain) ? reply : reply.map(plainReply)
  if (reply instanceof Map) return [...reply].flat().map(plainReply)
  if (reply instanceof Set) return [...reply].map(plainReply)
  if (Buffer.isBuffer(reply)) return reply.toString()
  switch (typeof reply) {
    case 'boolean':
    case 'bigint':
      return Number(reply)
    case 'object':
      return Object.entries(reply).flat().map(plainReply)
    default:
      return null
  }
}

function isPlain(reply: unknown): reply is string | number {
  return typeof reply === 'string' || typeof reply === 'number'
}

/** The server's own words: a code in capitals, then a text. What client packages say begins otherwise. */
const ERROR_REPLY = /^[A-Z][A-Z0-9]+( |$)/

/** What the server says of an unknown command, which may have been AUTH. */
const ARGUMENTS = /, with args beginning with:.*$/s

/**
 * Makes a RedisReplyError of the rejection of a client package where the server has answered with an error. It has none
 * of the arguments of the command, which may be a password; ioredis keeps them with its error.
 */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === 'ReplyError' || ERROR_REPLY.test(error.message))
    return new RedisReplyError(error.message.replace(ARGUMENTS, ''))
  Reflect.deleteProperty(error, 'command')
  return error
}
