export { enterOnce } from './subscriptions.js'
