export { limitFetch, type CallLimiter } from './limit-fetch.js'
export { limitRequests, type Middleware } from './connect.js'
export { limitFastify, type FastifyHook } from './fastify.js'
export type { KeyedRequestLimiter, RequestDecision, RequestLimiter, RequestOptions } from './request-limit.js'
