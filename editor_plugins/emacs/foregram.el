;;; foregram.el --- Ghost text from a model on your machine  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (lsp-mode "10.0.0"))
;; Keywords: languages, convenience, tools

;;; Commentary:

;; foregram completes code over several lines with a model that runs on your
;; own machine.  This file makes its language server, `foregram lsp', known to
;; lsp-mode, beside any other server of the buffer:
;;
;;   (require 'foregram)
;;   (add-hook 'prog-mode-hook #'lsp-deferred)
;;
;; Ghost text comes when you pause.  While it is shown, TAB takes it, C-n and C-p
;; show another candidate, C-g hides it, and any other key does what it always
;; does.
;; `foregram-complete' asks at once and for several candidates, and
;; `foregram-why' says why there was nothing to show.

;;; Code:

(require 'lsp-mode)
(require 'lsp-inline-completion)

(defgroup foregram nil
  "Ghost text from a model on your machine."
  :group 'lsp-mode
  :prefix "foregram-")

(defcustom foregram-command '("foregram" "lsp")
  "The command that starts the language server, and its arguments."
  :type '(repeat string))

(defun foregram--set-settings (symbol value)
  "Set SYMBOL to VALUE and tell a running server."
  (set-default symbol value)
  (when (fboundp 'foregram-send-settings)
    (foregram-send-settings)))

(defcustom foregram-settings nil
  "Settings of the server: a property list of foregram's names in camelCase.
For example (:maxTokens 64 :languages (:markdown :json-false)).
Set it with `setopt' or Customize, or call `foregram-send-settings' afterwards.
A name taken out of the list keeps its value until the server starts again."
  :type '(plist :key-type (symbol :tag "Name") :value-type (sexp :tag "Value"))
  :set #'foregram--set-settings)

(defcustom foregram-modes '(prog-mode text-mode conf-mode)
  "Major modes to suggest in, with all the modes derived from them."
  :type '(repeat symbol))

(defcustom foregram-idle-delay 0.2
  "Seconds without a key before ghost text is asked for.
It never comes sooner than `lsp-idle-delay', which lsp-mode waits first."
  :type 'number)

(defcustom foregram-accept-keys '("TAB" "<tab>")
  "Keys that take the ghost text while it is shown, in the syntax of `kbd'."
  :type '(repeat string))

(defvar foregram--status nil
  "What the server last said of itself: a kind, a message and whether it is busy.")

;;;###autoload
(defun foregram-complete ()
  "Ask for suggestions at point now."
  (interactive)
  ;; An automatic request that begins meanwhile would cancel this one, and
  ;; lsp-mode would wait for its answer until `lsp-response-timeout'.
  (let ((lsp-inline-completion-inhibit-predicates '(always)))
    (lsp-inline-completion-display)))

;;;###autoload
(defun foregram-why ()
  "Say why nothing is shown in this buffer now, or why the last answer was empty."
  (interactive)
  (let* ((about (list :textDocument (lsp--text-document-identifier)))
         (told (foregram--run "foregram.why" about))
         (answers (append (lsp-get told :answers) nil))
         (answer (or (lsp-get told :now) (car answers))))
    (message "foregram: %s"
             (cond ((null answer) "no answer was empty")
                   ((lsp-get told :now) (lsp-get answer :sentence))
                   (t (format "%s (%d s ago)" (lsp-get answer :sentence)
                              (lsp-get answer :age_s)))))))

(defun foregram-send-settings ()
  "Have the running server take `foregram-settings' over."
  (interactive)
  (when-let ((workspace (foregram--workspace)))
    (with-lsp-workspace workspace
      (lsp--set-configuration (list :foregram foregram-settings)))))

(defun foregram--workspace ()
  "The running server, as lsp-mode sees it."
  (when (lsp-session)
    (lsp-find-workspace 'foregram)))

(defun foregram--run (command &rest arguments)
  "What COMMAND of the server answers to ARGUMENTS."
  (with-lsp-workspace (or (foregram--workspace) (user-error "The server does not run"))
    (lsp-workspace-command-execute command (vconcat arguments))))

(defun foregram--accepted (command)
  "Tell the server which completion was taken, by the COMMAND of its item.
Nobody waits for the answer, and no other server of the buffer is asked."
  (with-lsp-workspace (foregram--workspace)
    (lsp-request-async "workspace/executeCommand"
                       (list :command (lsp-get command :command)
                             :arguments (lsp-get command :arguments))
                       #'ignore
                       :error-handler #'ignore
                       :mode 'detached)))

(defun foregram--shown ()
  "Tell the server that the current item is on the screen, if it is the server's."
  (when-let* ((item (elt lsp-inline-completion--items lsp-inline-completion--current))
              (command (lsp-get item :command))
              ((equal (lsp-get command :command) "foregram.accept")))
    (with-lsp-workspace (foregram--workspace)
      (lsp-notify "textDocument/didShowCompletion" (list :item item)))))

(defun foregram--status-changed (_workspace params)
  "Remember the server's state, which PARAMS hold, for the mode line."
  (setq foregram--status params)
  (force-mode-line-update t))

(defun foregram--mode-line ()
  "The server's state where it is not the usual one."
  (when (and foregram--status (bound-and-true-p lsp-managed-mode))
    (let ((kind (lsp-get foregram--status :kind))
          (message (lsp-get foregram--status :message)))
      (unless (equal kind "Normal")
        (propertize (format " foregram:%s" kind) 'help-echo message)))))

(defun foregram--opened ()
  "Prepare a buffer that the server has opened."
  (setq-local lsp-inline-completion-idle-delay foregram-idle-delay)
  (add-hook 'lsp-inline-completion-shown-hook #'foregram--shown nil t))

(defun foregram--options ()
  "What the server gets to start with."
  (list :editorInfo (list :name "Emacs" :version emacs-version)
        :foregram foregram-settings))

(dolist (key foregram-accept-keys)
  (define-key lsp-inline-completion-active-map (kbd key) #'lsp-inline-completion-accept))

(add-to-list 'mode-line-misc-info '(:eval (foregram--mode-line)) t)

(lsp-register-client
 (make-lsp-client
  :server-id 'foregram
  :new-connection (lsp-stdio-connection (lambda () foregram-command))
  :activation-fn (lambda (&rest _) (apply #'derived-mode-p foregram-modes))
  :add-on? t
  :multi-root t
  :priority -2
  :completion-in-comments? t
  :initialization-options #'foregram--options
  :after-open-fn #'foregram--opened
  :action-handlers (lsp-ht ("foregram.accept" #'foregram--accepted))
  :notification-handlers (lsp-ht ("didChangeStatus" #'foregram--status-changed))))

(provide 'foregram)
;;; foregram.el ends here
