# cmake --install: headers, libraries, the program, and how others find them: a
# CMake package and two files for pkg-config. All of it may be moved as a whole.
# The components are the packages of tools/make-deb: library, development, program.
# A portable build is for systems that lack what the static library is linked with,
# so that is left out there.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/calx)
install(DIRECTORY include/calx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)
set_target_properties(calx_shared PROPERTIES EXPORT_NAME calx)
set_target_properties(calx_static PROPERTIES EXPORT_NAME static)
install(TARGETS calx_shared EXPORT calx_shared
  LIBRARY COMPONENT library NAMELINK_COMPONENT development)
set(kinds shared)
set(files calx)
if(NOT CALX_PORTABLE)
  list(APPEND kinds static)
  list(APPEND files calx-static)
  install(TARGETS calx_static EXPORT calx_static
    ARCHIVE COMPONENT development)
endif()
install(TARGETS calx RUNTIME COMPONENT program)
if(TARGET calx_man)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
endif()
# Libraries that are loaded by name: the engine's compiler, what talks by MPI,
# and the engine for others.
foreach(library calx_cpu calx_jit calx_mpi_mpich calx_mpi_openmpi)
  if(TARGET ${library})
    # Theirs, LLVM and MPI, may lie in folders of their own.
    set_target_properties(${library} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${library} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT library)
  endif()
endforeach()

# The program finds them from bin/, and in the build beside itself.
file(RELATIVE_PATH libraries ${CMAKE_INSTALL_FULL_BINDIR}
  ${CMAKE_INSTALL_FULL_LIBDIR})
set(rpath "$ORIGIN/${libraries}")
if(CALX_PORTABLE)
  list(APPEND rpath "$ORIGIN/${libraries}/calx")
endif()
set_target_properties(calx PROPERTIES BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "${rpath}")

# Two exports, so that who uses the shared library needs nothing of what the
# static one is linked with.
foreach(kind ${kinds})
  install(EXPORT calx_${kind} FILE calx_${kind}.cmake NAMESPACE calx::
    DESTINATION ${package} COMPONENT development)
endforeach()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/config.cmake.in
  ${PROJECT_BINARY_DIR}/calx-config.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/calx-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/calx-config.cmake
  ${PROJECT_BINARY_DIR}/calx-config-version.cmake DESTINATION ${package}
  COMPONENT development)

# pkg-config names folders from where its file is.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH calx_pc_prefix ${pkgconfig} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" calx_pc_prefix "${calx_pc_prefix}")
file(RELATIVE_PATH calx_pc_libdir ${CMAKE_INSTALL_PREFIX}
  ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH calx_pc_includedir ${CMAKE_INSTALL_PREFIX}
  ${CMAKE_INSTALL_FULL_INCLUDEDIR})
# A program finds the library where the linker does not look by itself.
set(calx_pc_rpath "-Wl,-rpath,\${libdir}")
if(CMAKE_INSTALL_FULL_LIBDIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES
    AND NOT CMAKE_INSTALL_FULL_LIBDIR MATCHES "^/usr/local/")
  set(calx_pc_rpath)
endif()
# pkg-config wants these to be installed even for who links the shared library.
set(calx_pc_private "Requires.private: zlib libxxhash libprotobuf-c jansson \
libzip yaml-0.1${CALX_IMAGE_PACKAGES}
Libs.private: -pthread -ldl -lm")
if(CALX_PORTABLE)
  set(calx_pc_private)
endif()
foreach(file ${files})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${file}.pc.in
    ${PROJECT_BINARY_DIR}/${file}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${file}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
